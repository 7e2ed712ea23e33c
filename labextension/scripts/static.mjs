// Bundles the panel in a notebook (src/widget), which is shown outside JupyterLab, into files for the kernel to hand out.
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

const here = path => fileURLToPath(new URL(`../${path}`, import.meta.url));
const entries = ['src/widget/index.ts', 'style/widget.css'];

// Style sheets name packages as Rspack wants it, with a tilde.
const tilde = {
  name: 'tilde',
  setup: ({ onResolve, resolve }) =>
    onResolve({ filter: /^~/ }, ({ path, kind, resolveDir }) =>
      resolve(path.slice(1), { kind, resolveDir })
    )
};

await build({
  entryPoints: entries.map(path => ({ in: here(path), out: 'widget' })),
  outdir: here('../jupyter_tfguard/static'),
  bundle: true,
  format: 'esm',
  legalComments: 'inline',
  minify: true,
  plugins: [tilde],
  target: 'es2020',
  logLevel: 'warning'
});
