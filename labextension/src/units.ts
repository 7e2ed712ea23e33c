/**
 * Formats numbers. Bytes use binary units. An unknown value is a dash, never 0. Contains only signs and units;
 * words that need translation are in `when.ts`. Bytes and counts as in `units.py`: `tests/wire/numbers.json` has samples.
 */

export const UNKNOWN = '–';

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

interface IScaled {
  readonly digits: string;
  readonly unit: string;
}

/** Whole numbers up to MiB; from GiB two decimals below 10, else one. */
function scale(bytes: number): IScaled {
  let value = bytes;
  let power = 0;
  while (value >= 1023.5 && power < BYTE_UNITS.length - 1) {
    value /= 1024;
    power += 1;
  }
  const decimals = power < 3 ? 0 : value < 9.995 ? 2 : 1;
  return { digits: fixed(value, decimals), unit: BYTE_UNITS[power] ?? '' };
}

/** With so many decimals; a half is rounded to the even digit, as Python does. */
function fixed(value: number, decimals: number): string {
  const scaled = value * 10 ** decimals;
  const isHalf = scaled % 1 === 0.5;
  return (isHalf ? (2 * Math.round(scaled / 2)) / 10 ** decimals : value).toFixed(decimals);
}

/** `5.90 GiB`, `14.9 GiB`, `612 MiB`. */
export function humanBytes(bytes: number | null): string {
  if (bytes === null) {
    return UNKNOWN;
  }
  const { digits, unit } = scale(bytes);
  return `${digits} ${unit}`;
}

/** Axis label for bytes: `0`, `4 GiB`, `512 MiB`. */
export function tickBytes(bytes: number): string {
  return bytes === 0 ? '0' : humanBytes(bytes).replace(/\.0+ /, ' ');
}

/** Used and limit; the first without its unit if both units are equal: `5.90` and `8.00 GiB`. */
export function bytesOfLimit(used: number | null, limit: number): [string, string] {
  if (used === null) {
    return [UNKNOWN, humanBytes(limit)];
  }
  const small = scale(used);
  return [small.unit === scale(limit).unit ? small.digits : humanBytes(used), humanBytes(limit)];
}

/** A change: `+3.10 GiB`, `−40 MiB`, `0`. */
export function signedBytes(bytes: number | null): string {
  if (bytes === null || bytes === 0) {
    return bytes === null ? UNKNOWN : '0';
  }
  return `${bytes < 0 ? '−' : '+'}${humanBytes(Math.abs(bytes))}`;
}

/** `9.8 M`, `12,345`. */
export function humanCount(count: number): string {
  const steps: [number, string][] = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M']
  ];
  const step = steps.find(([size]) => count >= size);
  return step === undefined
    ? count.toLocaleString('en-US', { maximumFractionDigits: 0 })
    : `${fixed(count / step[0], 1)} ${step[1]}`;
}

/** A logged metric with three significant digits; exponents only for very small or large values. */
export function humanMetric(value: number | string | null): string {
  if (value === null) {
    return UNKNOWN;
  }
  if (typeof value === 'string') {
    return value;
  }
  if (Number.isInteger(value)) {
    return String(value);
  }
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) {
    return value.toExponential(2);
  }
  // Rounding may lead to the next power of ten, which three digits would write with an exponent.
  const digits = Math.max(3, Math.ceil(Math.log10(size)));
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 10 ** digits ? String(rounded) : value.toPrecision(digits);
}

/** `4.2`, `310`; for rates per second. */
export function humanRate(perSecond: number): string {
  return perSecond < 99.5 ? perSecond.toPrecision(2) : String(Math.round(perSecond));
}

/** `83 %`. */
export function humanPercent(fraction: number): string {
  return `${Math.round(fraction * 100)} %`;
}

/** The last part of a path, as on the tab of a notebook. The prefix `RTC:` marks shared editing. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/^RTC:/, '');
}

/** JupyterLab cuts notifications at 140 characters, so names are limited. */
const NAME_LENGTH = 40;

/** The name, with its middle elided if it is too long. */
export function shortName(name: string, length = NAME_LENGTH): string {
  return name.length <= length ? name : `${name.slice(0, length - 11)}…${name.slice(-10)}`;
}

/** Short name of a notebook, for the panel. */
export function shortFileName(path: string): string {
  return shortName(fileName(path), 28);
}
