/** Equal crashes, as the server finds them, are one row of the list. */
import type { CrashEntry } from '../wire';

/** One row of the list: a crash with the earlier ones that equal it, newest first. */
export interface IDeathRow {
  readonly entry: CrashEntry;
  readonly others: readonly CrashEntry[];
}

/** Rows in the order of their newest crashes. `crashes`: newest first. */
export function deathRows(crashes: readonly CrashEntry[]): IDeathRow[] {
  return crashes
    .filter(({ same_as }) => same_as === null)
    .map(entry => ({ entry, others: crashes.filter(({ same_as }) => same_as === entry.id) }));
}
