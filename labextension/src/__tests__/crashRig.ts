/** The event of a crash, as the server sends it. */
import { CRASH_SCHEMA_ID } from '../wire';
import { sample } from './samples';

export const KERNEL = '6f2b8a52-0f5e-4c5e-9d0b-3b7c1d4e9a10';

/** @param change what is different from the sample */
export function emission(change: object = {}): { schema_id: string } {
  return { ...sample('event'), schema_id: CRASH_SCHEMA_ID, ...change };
}
