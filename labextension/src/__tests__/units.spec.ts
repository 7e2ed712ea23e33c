// @vitest-environment node
import { describe, expect, it } from 'vitest';

import {
  bytesOfLimit,
  fileName,
  humanBytes,
  humanCount,
  humanMetric,
  humanRate,
  shortFileName,
  tickBytes
} from '../units';

import { sample } from './samples';

const GIB = 2 ** 30;
const MIB = 2 ** 20;

describe('units', () => {
  it.each<[number | null, string]>(sample('numbers').bytes)(
    'prints %s bytes as %s, as Python does',
    (bytes, text) => {
      expect(humanBytes(bytes)).toBe(text);
    }
  );

  it.each<[number, string]>(sample('numbers').counts)(
    'counts %s as %s, as Python does',
    (count, text) => {
      expect(humanCount(count)).toBe(text);
    }
  );

  it.each([
    ['course/train.ipynb', 'train.ipynb'],
    ['a/very-long-name-of-an-experiment-v2.ipynb', 'very-long-name-of…t-v2.ipynb'],
    ['a/very-long-name-of-an-experiment-v3.ipynb', 'very-long-name-of…t-v3.ipynb']
  ])('cuts the name of %s in the middle, if at all', (path, name) => {
    expect(shortFileName(path)).toBe(name);
  });

  it('gives the unit once where both have the same', () => {
    expect(bytesOfLimit(5.9 * GIB, 8 * GIB)).toEqual(['5.90', '8.00 GiB']);
    expect(bytesOfLimit(512 * MIB, 8 * GIB)).toEqual(['512 MiB', '8.00 GiB']);
    expect(bytesOfLimit(null, 8 * GIB)).toEqual(['–', '8.00 GiB']);
  });

  it('keeps axis labels short', () => {
    expect([0, 4 * GIB, 512 * MIB].map(tickBytes)).toEqual(['0', '4 GiB', '512 MiB']);
  });

  it.each([
    [0.41217, '0.412'],
    [2.3041, '2.30'],
    [0, '0'],
    [10, '10'],
    [1234.567, '1235'],
    [999.7, '1000'],
    [-9999.96, '-10000'],
    [99.97, '100'],
    [1e-7, '1.00e-7'],
    ['nan', 'nan'],
    [null, '–']
  ])('prints the metric %s as %s', (value, text) => {
    expect(humanMetric(value)).toBe(text);
  });

  it('prints rates with two digits', () => {
    expect([4.21, 0.052, 310.4].map(humanRate)).toEqual(['4.2', '0.052', '310']);
    expect([99.4, 99.7, 9.97].map(humanRate)).toEqual(['99', '100', '10']);
  });

  it('names a notebook by its file', () => {
    expect(fileName('course/train.ipynb')).toBe('train.ipynb');
    expect(fileName('RTC:train.ipynb')).toBe('train.ipynb');
  });
});
