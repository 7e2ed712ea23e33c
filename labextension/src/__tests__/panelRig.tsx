/** The panel as it is drawn for one kernel, with the samples of the wire. */
import * as React from 'react';
import { vi } from 'vitest';

import { Panel } from '../live/Panel';
import { Series } from '../series';

import { render } from './render';
import type { IRendered } from './render';
import { sample, trans } from './samples';

export const copy = { label: 'Copy', done: 'Copied', failed: 'Copy failed', write: vi.fn() };
export const NOW = Date.parse('2026-11-21T12:00:00Z') / 1000;

export function kernel(index: number): ReturnType<typeof sample> {
  return sample('status').kernels[index];
}

export function draw(
  state: Partial<Panel.IState> = {},
  onOpenReport = vi.fn(),
  onShowStacks = vi.fn(),
  now = NOW,
  onDismiss = vi.fn()
): IRendered {
  const current = state.kernel === undefined ? kernel(0) : state.kernel;
  const series = new Series();
  series.push(1, 1_000);
  const model: Panel.IState = {
    crashes: [],
    gpuSeries: new Map(),
    gpus: { state: 'none', reason: 'No NVIDIA GPU found', devices: [] },
    hasAnswer: true,
    isNearStop: false,
    marks: [],
    others: [],
    outOfMemory: [],
    problems: [],
    series,
    server: 'ok',
    staleSeconds: null,
    target: { path: 'course/train.ipynb', kernelId: current?.kernel_id ?? 'k' },
    trouble: null,
    ...state,
    kernel: current
  };
  return render(
    <Panel
      model={model}
      copy={copy}
      now={now}
      onDismiss={onDismiss}
      onOpenNotebook={vi.fn()}
      onOpenReport={onOpenReport}
      onShowOptions={vi.fn()}
      onShowStacks={onShowStacks}
      trans={trans}
    />
  );
}
