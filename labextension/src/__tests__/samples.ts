/** The JSON samples that the Python tests read as well. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

import { nullTranslator } from '@jupyterlab/translation';

import type { CrashEntry } from '../wire';

const FOLDER = resolve(__dirname, '../../../tests/wire');

export const trans = nullTranslator.load('jupyter_tfguard');

export function sampleText(name: string): string {
  return readFileSync(resolve(FOLDER, `${name}.json`), 'utf8');
}

/** A fresh copy, to be changed at will. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function sample(name: string): any {
  return JSON.parse(sampleText(name));
}

/** The list of crashes, newest first. */
export function crashEntries(): CrashEntry[] {
  return sample('crashes').crashes;
}
