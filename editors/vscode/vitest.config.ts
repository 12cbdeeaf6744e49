import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      // VS Code's API exists inside VS Code alone; what uses it is tested with a small double, and whole in code-server.
      { find: /^vscode$/, replacement: path("test/doubles/vscode.ts") },
    ],
  },
  test: { include: ["test/**/*.test.ts"], testTimeout: 60_000, reporters: ["default"] },
});
