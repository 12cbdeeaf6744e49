// The build of the page: relative addresses, styles and scripts in files of their own, licences of what is bundled.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

import { licences } from './build/licences.ts';

export default defineConfig({
  base: './',
  plugins: [svelte(), licences('../LICENSE')],
  build: { target: 'es2023', assetsInlineLimit: 0, modulePreload: { polyfill: false }, sourcemap: false },
  // Tests render components: the browser's build of Svelte, not the server's.
  resolve: process.env['VITEST'] ? { conditions: ['browser'] } : {},
});
