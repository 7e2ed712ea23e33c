import * as React from 'react';

import { Section } from '../parts/Section';
import { humanBytes, shortFileName } from '../units';
import type { OtherKernel } from '../wire';
import type { Trans } from '../trans';

/** Memory of the other kernels. Nothing if this is the only kernel. */
export function OtherKernels(props: OtherKernels.IProps): React.JSX.Element | null {
  const { others, trans } = props;
  if (others.length === 0) {
    return null;
  }
  return (
    <Section name="Others" title={trans.__('Other kernels')}>
      <ul className="jp-TfGuard-list">
        {others.map(other => (
          <li key={other.kernel_id} className="jp-TfGuard-row jp-TfGuard-small">
            <span className="jp-TfGuard-name" title={other.notebook_path ?? other.kernel_id}>
              {otherName(other, trans)}
            </span>
            <span>{heldText(other, trans)}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

export namespace OtherKernels {
  export interface IProps {
    readonly others: readonly OtherKernel[];
    readonly trans: Trans;
  }
}

function otherName(other: OtherKernel, trans: Trans): string {
  if (other.notebook_path !== null) {
    return shortFileName(other.notebook_path);
  }
  return other.kernel_name ?? trans.__('kernel without a notebook');
}

/** `2.40 GiB · GPU 9.10 GiB`; the second part only if the kernel is known to use GPU memory. */
function heldText({ gpu_bytes, rss_bytes }: OtherKernel, trans: Trans): string {
  const host = humanBytes(rss_bytes);
  return gpu_bytes === null || gpu_bytes <= 0
    ? host
    : trans.__('%1 · GPU %2', host, humanBytes(gpu_bytes));
}
