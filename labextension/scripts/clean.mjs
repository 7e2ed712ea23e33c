// Removes what a build leaves, on every system alike.
import { rmSync } from 'node:fs';

const built = ['../lib', '../../jupyter_tfguard/labextension'];
for (const path of built) {
  rmSync(new URL(path, import.meta.url), { force: true, recursive: true });
}
