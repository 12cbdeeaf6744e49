// Unit tests: everything below src, in a document.
import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vite.config';

export default mergeConfig(base, defineConfig({
  test: { include: ['src/**/*.test.ts'], environment: 'jsdom', setupFiles: ['src/test-setup.ts'] },
}));
