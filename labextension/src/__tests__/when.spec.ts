import { afterEach, describe, expect, it, vi } from 'vitest';

import { clock, dayAndTime, fullTime, humanSpan, parseStamp } from '../when';

import { trans } from './samples';

describe('when', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    document.documentElement.lang = '';
  });

  it.each([
    [41, '41 s'],
    [545, '9 min'],
    [7500, '2 h 5 min'],
    [3 * 86_400, '3 d'],
    [-4, '0 s']
  ])('prints a span of %s s as %s', (seconds, text) => {
    expect(humanSpan(seconds, trans)).toBe(text);
  });

  it('shortens a time of today, of this week, and of long ago', () => {
    const now = new Date(2026, 10, 21, 16, 0).getTime() / 1000;
    const at = (day: number): number => new Date(2026, 10, day, 2, 14).getTime() / 1000;
    expect(dayAndTime(at(21), now, trans)).toBe('today 02:14');
    expect(dayAndTime(at(19), now, trans)).toMatch(/^\S+ 02:14$/);
    expect(dayAndTime(at(1), now, trans)).toContain('2026');
  });

  it('names days and months in the language of the page', () => {
    const at = new Date(2026, 10, 22, 2, 14, 7).toISOString();
    const now = new Date(2026, 10, 24, 2, 0).getTime() / 1000;
    document.documentElement.lang = 'de';
    expect(fullTime(at)).toMatch(/^Sonntag, 22. November 2026, 02:14:07 \S+$/);
    expect(dayAndTime(parseStamp(at), now, trans)).toBe('So 02:14');
    document.documentElement.lang = 'fr_FR';
    expect(fullTime(at)).toContain('dimanche 22 novembre 2026');
    document.documentElement.lang = 'en';
    vi.stubGlobal('navigator', { languages: ['de', 'en-GB', 'en-US'] });
    expect(fullTime(at)).toMatch(/^Sunday,? 22 November 2026/);
    for (const none of ['', '!']) {
      document.documentElement.lang = none;
      expect(fullTime(at)).toContain('2026, 02:14:07');
    }
  });

  it('prints the time of day with and without seconds', () => {
    const seconds = new Date(2026, 10, 21, 0, 14, 7).getTime() / 1000;
    expect(clock(seconds)).toBe('00:14:07');
    expect(clock(seconds, true)).toBe('00:14');
  });
});
