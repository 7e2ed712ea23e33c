import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [
    {
      // JupyterLab's packages import their icons as text; the browser build does the same.
      name: 'svg-as-text',
      enforce: 'pre',
      transform: (code, id) =>
        id.endsWith('.svg') ? `export default ${JSON.stringify(code)};` : undefined
    }
  ],
  test: {
    environment: 'jsdom',
    include: ['src/__tests__/**/*.spec.{ts,tsx}'],
    restoreMocks: true,
    testTimeout: 120_000,
    server: { deps: { inline: [/@jupyter/, /@lumino/] } }
  }
});
