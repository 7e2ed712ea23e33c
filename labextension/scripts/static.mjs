// Bundles the panel in a notebook (src/widget), which is shown outside JupyterLab, into files for the kernel to hand out.
// Each file begins with the licences of the packages in it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
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

const { metafile, outputFiles } = await build({
  entryPoints: entries.map(path => ({ in: here(path), out: 'widget' })),
  outdir: here('../jupyter_tfguard/static'),
  bundle: true,
  format: 'esm',
  legalComments: 'none',
  metafile: true,
  minify: true,
  plugins: [tilde],
  target: 'es2020',
  logLevel: 'warning',
  write: false
});

for (const { path, text } of outputFiles) {
  const output = relative(process.cwd(), path).replaceAll('\\', '/');
  const inputs = Object.keys(metafile.outputs[output].inputs);
  const packages = inputs.flatMap(name => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(name) ?? []);
  const licences = [...new Set(packages)].map(
    folder =>
      `/*! ${folder.split('node_modules/').at(-1)}\n\n${readFileSync(`${folder}/LICENSE`, 'utf8')}*/\n`
  );
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, licences.join('') + text);
}
