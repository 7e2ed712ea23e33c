/**
 * Reads JSON of unknown shape. A check returns a value of its type, or throws a `ShapeError` that
 * says where the text differs. Keys that no check names are left out; a missing key counts as null.
 */

/** What came is not what was agreed on. */
export class ShapeError extends Error {
  constructor(where: string, wanted: string, found: unknown) {
    super(`${where}: expected ${wanted}, found ${describe(found)}`);
    this.name = 'ShapeError';
  }
}

/** Reads one value; `where` is its place, for the message. */
export type Check<T> = (value: unknown, where: string) => T;

/** The type that a check returns. */
export type Checked<C> = C extends Check<infer T> ? T : never;

export const text: Check<string> = (value, where) => {
  if (typeof value !== 'string') {
    throw new ShapeError(where, 'a text', value);
  }
  return value;
};

/** A finite number: JSON has no others, Python's NaN does not parse. */
export const number: Check<number> = (value, where) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new ShapeError(where, 'a number', value);
  }
  return value;
};

export const flag: Check<boolean> = (value, where) => {
  if (typeof value !== 'boolean') {
    throw new ShapeError(where, 'true or false', value);
  }
  return value;
};

/** The value, or null for "not known" and "does not apply". */
export function orNull<T>(check: Check<T>): Check<T | null> {
  return (value, where) => (value === null || value === undefined ? null : check(value, where));
}

/** One of a few words. */
export function word<T extends string>(...words: readonly T[]): Check<T> {
  return (value, where) => {
    const found = words.find(known => known === value);
    if (found === undefined) {
      throw new ShapeError(where, `one of ${words.join(', ')}`, value);
    }
    return found;
  };
}

export function listOf<T>(check: Check<T>): Check<T[]> {
  return (value, where) => {
    if (!Array.isArray(value)) {
      throw new ShapeError(where, 'a list', value);
    }
    return value.map((item, index) => check(item, `${where}[${index}]`));
  };
}

/** A list of fixed length, one check per place. */
export function tuple<T extends unknown[]>(...checks: { [I in keyof T]: Check<T[I]> }): Check<T> {
  return (value, where) => {
    if (!Array.isArray(value) || value.length !== checks.length) {
      throw new ShapeError(where, `a list of ${checks.length}`, value);
    }
    return checks.map((check, index) => check(value[index], `${where}[${index}]`)) as T;
  };
}

/** An object with these keys. */
export function shape<S extends Record<string, Check<unknown>>>(
  keys: S
): Check<{ [K in keyof S]: Checked<S[K]> }> {
  return (value, where) => {
    const found = asObject(value, where);
    const result: Record<string, unknown> = {};
    for (const [key, check] of Object.entries(keys)) {
      result[key] = check(found[key], `${where}.${key}`);
    }
    return result as { [K in keyof S]: Checked<S[K]> };
  };
}

/** An object whose keys are the sender's own choice; the order stays. */
export function mapOf<T>(check: Check<T>): Check<Map<string, T>> {
  return (value, where) =>
    new Map(
      Object.entries(asObject(value, where)).map(([key, item]) => [
        key,
        check(item, `${where}.${key}`)
      ])
    );
}

function asObject(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ShapeError(where, 'an object', value);
  }
  return value as Record<string, unknown>;
}

function describe(value: unknown): string {
  if (value === null || value === undefined) {
    return 'nothing';
  }
  if (Array.isArray(value)) {
    return `a list of ${value.length}`;
  }
  return typeof value === 'object' ? 'an object' : JSON.stringify(value).slice(0, 40);
}
