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

const GIB = 2 ** 30;
const MIB = 2 ** 20;

describe('units', () => {
  it.each([
    [null, '–'],
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [612 * MIB, '612 MiB'],
    [GIB - 1, '1.0 GiB'],
    [5.9 * GIB, '5.9 GiB'],
    [8 * GIB, '8.0 GiB'],
    [1023.99 * GIB, '1.0 TiB'],
    [40 * GIB, '40.0 GiB']
  ])('prints %s bytes as %s', (bytes, text) => {
    expect(humanBytes(bytes)).toBe(text);
  });

  it.each([
    ['course/train.ipynb', 'train.ipynb'],
    ['a/very-long-name-of-an-experiment-v2.ipynb', 'very-long-name-of…t-v2.ipynb'],
    ['a/very-long-name-of-an-experiment-v3.ipynb', 'very-long-name-of…t-v3.ipynb']
  ])('cuts the name of %s in the middle, if at all', (path, name) => {
    expect(shortFileName(path)).toBe(name);
  });

  it('gives the unit once where both have the same', () => {
    expect(bytesOfLimit(5.9 * GIB, 8 * GIB)).toEqual(['5.9', '8.0 GiB']);
    expect(bytesOfLimit(512 * MIB, 8 * GIB)).toEqual(['512 MiB', '8.0 GiB']);
    expect(bytesOfLimit(null, 8 * GIB)).toEqual(['–', '8.0 GiB']);
  });

  it('keeps axis labels short', () => {
    expect([0, 4 * GIB, 512 * MIB].map(tickBytes)).toEqual(['0', '4 GiB', '512 MiB']);
  });

  it.each([
    [313, '313'],
    [9999, '9999'],
    [12_400, '12.4 k'],
    [9_835_338, '9.8 M'],
    [1.5e9, '1.5 G']
  ])('counts %s as %s', (count, text) => {
    expect(humanCount(count)).toBe(text);
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
