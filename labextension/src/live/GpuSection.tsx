import * as React from 'react';

import { Section } from '../parts/Section';
import { bytesOfLimit, humanBytes, humanPercent } from '../units';
import type { GpuDevice, Gpus } from '../wire';
import type { Trans } from '../words';

/** One part per GPU; a single line where there is none. */
export function GpuSection(props: GpuSection.IProps): React.JSX.Element {
  const { gpus, trans } = props;
  if (gpus.devices.length === 0) {
    return (
      <Section name="Gpu" title={trans.__('GPU')}>
        <div className="jp-TfGuard-quiet">{emptyText(gpus, trans)}</div>
      </Section>
    );
  }
  return (
    <>
      {gpus.devices.map(device => (
        <Gpu key={device.gpu_uuid} device={device} trans={trans} />
      ))}
    </>
  );
}

export namespace GpuSection {
  export interface IProps {
    readonly gpus: Gpus;
    readonly trans: Trans;
  }
}

function emptyText(gpus: Gpus, trans: Trans): string {
  switch (gpus.state) {
    case 'starting':
      return trans.__('Looking for GPUs…');
    case 'unavailable':
      return gpus.reason ?? trans.__('GPU values are not available here');
    case 'none':
    case 'ok':
      return gpus.reason ?? trans.__('No NVIDIA GPU here');
  }
}

function Gpu({ device, trans }: { device: GpuDevice; trans: Trans }): React.JSX.Element {
  const { memory_total_bytes: total, memory_used_bytes: used } = device;
  const facts = [
    ...(device.utilization_fraction === null
      ? []
      : [trans.__('%1 busy', humanPercent(device.utilization_fraction))]),
    ...(device.temperature_celsius === null
      ? []
      : [trans.__('%1 °C', Math.round(device.temperature_celsius))]),
    ...(device.power_watts === null ? [] : [trans.__('%1 W', Math.round(device.power_watts))])
  ];
  return (
    <Section name="Gpu" title={trans.__('GPU %1', device.nvml_index)} aside={device.name}>
      {total !== null && total > 0 && used !== null && (
        <div className="jp-TfGuard-bar" aria-hidden="true">
          <i style={{ width: `${Math.min(100, (used / total) * 100)}%` }} />
        </div>
      )}
      <div className="jp-TfGuard-row jp-TfGuard-small">
        <span>{trans.__('used, all processes')}</span>
        <span>
          {total === null ? humanBytes(used) : trans.__('%1 of %2', ...bytesOfLimit(used, total))}
        </span>
      </div>
      <div className="jp-TfGuard-quiet jp-TfGuard-small">{facts.join(' · ')}</div>
    </Section>
  );
}
