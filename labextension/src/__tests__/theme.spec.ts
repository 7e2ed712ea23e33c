import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { onThemeChange, readPalette } from '../chart/theme';

describe('theme', () => {
  let isForced: boolean;
  const listeners = new Map<string, () => void>();

  beforeEach(() => {
    isForced = false;
    listeners.clear();
    vi.stubGlobal('matchMedia', (query: string) => ({
      matches: isForced && query.includes('forced-colors'),
      addEventListener: (_: string, listener: () => void) => listeners.set(query, listener),
      removeEventListener: () => listeners.delete(query)
    }));
  });

  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it('takes the colours of the page, and those of a system that forces its own', () => {
    document.body.style.setProperty('--jp-brand-color1', 'rgb(1, 2, 3)');
    expect(readPalette(document.body).limit).not.toBe('CanvasText');
    isForced = true;
    const forced = readPalette(document.body);
    expect([forced.line, forced.limit, forced.fill]).toEqual([
      'Highlight',
      'CanvasText',
      'transparent'
    ]);
    expect(forced.grid).toContain('CanvasText 25%');
    expect(document.body.childNodes).toHaveLength(0);
  });

  it('follows both system settings until it is stopped', () => {
    const changed = vi.fn();
    const end = onThemeChange(changed);
    expect([...listeners.keys()]).toEqual([
      '(prefers-color-scheme: dark)',
      '(forced-colors: active)'
    ]);
    listeners.forEach(listener => listener());
    expect(changed).toHaveBeenCalledTimes(2);
    end();
    expect(listeners.size).toBe(0);
  });
});
