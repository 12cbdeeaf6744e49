// Builds dist/: the extension for Node, the webview for a browser, and the licences of what went into them.
import { readFile, readdir, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import sveltePlugin from "esbuild-svelte";

const here = dirname(fileURLToPath(import.meta.url));
const production = process.argv.includes("--production");
const shared = { absWorkingDir: here, bundle: true, minify: production, sourcemap: !production, metafile: true, logLevel: "warning", legalComments: "none" };

await rm(join(here, "dist"), { recursive: true, force: true });
await mkdir(join(here, "dist"));

const extension = await esbuild.build({
  ...shared,
  entryPoints: ["src/extension/extension.ts"],
  outfile: "dist/extension.cjs",
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode", "bufferutil", "utf-8-validate"],
  // A dependency looks at it to recognise a browser; the extension host logs an error for each look.
  define: { navigator: "undefined" },
});
const webview = await esbuild.build({
  ...shared,
  entryPoints: { webview: "src/webview/main.ts" },
  outdir: "dist",
  platform: "browser",
  target: "es2022",
  format: "esm",
  // Highlighting is loaded when the first code block is complete.
  splitting: true,
  chunkNames: "chunks/[name]-[hash]",
  conditions: ["svelte", "browser"],
  mainFields: ["svelte", "browser", "module", "main"],
  // The components of the web page find their packages here, whether or not the page's own are installed.
  nodePaths: [join(here, "node_modules")],
  plugins: [ownPackages(), sveltePlugin({ compilerOptions: { runes: true, css: "external", dev: !production } })],
});
await writeFile(join(here, "dist/licences.txt"), await licences([extension, webview]));

/** One copy of each package: what the page's sources import is taken from here, not from the page's own folder. */
function ownPackages() {
  return {
    name: "own-packages",
    setup(build) {
      build.onResolve({ filter: /^[a-z@]/ }, async (args) => {
        if (args.pluginData === "own" || !args.importer.includes("/web/src/")) return undefined;
        return build.resolve(args.path, { resolveDir: here, kind: args.kind, pluginData: "own" });
      });
    },
  };
}

async function licences(results) {
  const packages = new Set();
  for (const { metafile } of results) {
    for (const input of Object.keys(metafile.inputs)) {
      const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
      if (match) packages.add(match[1]);
    }
  }
  const texts = [];
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    texts.push(`${name} ${version} (${license})\n\n${file ? await readFile(join(folder, file), "utf8") : ""}`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
