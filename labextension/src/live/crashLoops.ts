/** Which deaths of the list belong together: those of one kernel that died again and again. */
import { parseStamp } from '../when';
import type { CrashEntry } from '../wire';

/** A pause between two deaths longer than this ends a loop. */
const PAUSE_SECONDS = 600;

/** Fewer deaths, none of them counted, stand for themselves. */
const FEWEST = 3;

/** One row of the list: a death, or a loop by its newest entry with the others, newest first. */
export interface IDeathRow {
  readonly entry: CrashEntry;
  readonly others: readonly CrashEntry[];
}

/** Rows in the order of their newest deaths. `crashes`: newest first. */
export function deathRows(crashes: readonly CrashEntry[]): IDeathRow[] {
  const loops: CrashEntry[][] = [];
  const lastOf = new Map<string, CrashEntry[]>();
  for (const entry of crashes) {
    const key = `${entry.kernel_id} ${entry.kernel_alive}`;
    // A count tells of the whole loop: it goes below nothing, and what came before it goes below it.
    const stands = entry.kernel_id === null || entry.group !== null;
    const loop = stands ? undefined : lastOf.get(key);
    if (loop !== undefined && isSameLoop(loop[loop.length - 1], entry)) {
      loop.push(entry);
    } else {
      const made = [entry];
      loops.push(made);
      lastOf.set(key, made);
    }
  }
  const rows = loops.flatMap(loop =>
    loop.length >= FEWEST || loop.some(({ group }) => group !== null)
      ? [{ entry: loop[0], others: loop.slice(1) }]
      : loop.map(entry => ({ entry, others: [] }))
  );
  return rows.sort((a, b) => place(crashes, a) - place(crashes, b));
}

function place(crashes: readonly CrashEntry[], { entry }: IDeathRow): number {
  return crashes.indexOf(entry);
}

function isSameLoop(newer: CrashEntry, older: CrashEntry): boolean {
  const began = parseStamp(newer.group?.first_at ?? newer.died_at);
  const ended = parseStamp(older.died_at);
  return began !== null && ended !== null && began - ended <= PAUSE_SECONDS;
}
