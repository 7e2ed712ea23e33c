/** The GPU section of the panel, drawn, with its texts. */
import * as React from 'react';
import { vi } from 'vitest';

import type { IChartData } from '../chart/timeChart';
import { GpuSection } from '../live/gpu/GpuSection';
import type { GpuDevice, TensorFlowMemory } from '../wire';

import { card, GIB, KERNEL, machine } from './cards';
import { render } from './render';
import type { IRendered } from './render';
import { trans } from './samples';

export const NOW = Date.parse('2026-11-21T12:00:00Z') / 1000;

export const charts: IChartData[] = [];
vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    draw = (data: IChartData): unknown => charts.push(data);
    dispose = vi.fn();
  }
}));

export function draw(devices: GpuDevice[], props: Partial<GpuSection.IProps> = {}): IRendered {
  return render(
    <GpuSection
      gpus={machine(devices)}
      kernelId={KERNEL}
      inside={[]}
      growth={null}
      now={NOW}
      onOpenNotebook={vi.fn()}
      series={new Map()}
      trans={trans}
      {...props}
    />
  );
}

export function titles({ node }: IRendered): (string | null)[] {
  return [...node.querySelectorAll('.jp-TfGuard-Gpu h3')].map(title => title.textContent);
}

export function folded({ node }: IRendered): (string | null)[] {
  return [...node.querySelectorAll('.jp-TfGuard-Folded > summary')].map(line => line.textContent);
}

export function rows({ node }: IRendered): (string | null)[] {
  return [...node.querySelectorAll('.jp-TfGuard-row')].map(row => row.textContent);
}

export function widths({ node }: IRendered): string[] {
  return [...node.querySelectorAll<HTMLElement>('.jp-TfGuard-bar > i')].map(
    piece => `${piece.className.replace('jp-mod-', '')} ${piece.style.width}`
  );
}

export function tensors(changes: Partial<TensorFlowMemory> = {}): TensorFlowMemory {
  return {
    device: 'GPU:0',
    gpu_uuid: 'GPU-0-',
    in_use_bytes: 14.9 * GIB,
    peak_bytes: null,
    limit_bytes: null,
    ...changes
  };
}

export const eight = (changes: Record<number, GpuDevice> = {}): GpuDevice[] =>
  Array.from({ length: 8 }, (_, index) => changes[index] ?? card({ nvml_index: index }));
