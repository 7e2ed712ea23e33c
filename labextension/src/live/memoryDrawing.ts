/** Memory in use against the limit of a kernel, and who holds it. */
import type { IChartOptions } from '../chart/plot';
import { element, sign, write } from '../parts/dom';
import type { IDrawing } from '../parts/dom';
import type { Host, OtherKernel, Stop } from '../wire';
import type { Trans } from '../trans';

import { limitNotice } from './forecastText';
import { limitText, memoryText, sharesText } from './hostText';
import { memoryShares } from './memory';
import type { IShares } from './memory';
import { memoryChart } from './memoryCurve';
import type { IMemoryCurve } from './memoryCurve';
import { stopDrawing } from './stop';

export interface IMemory extends Pick<IMemoryCurve, 'marks' | 'series'> {
  readonly host: Host;
  readonly others: readonly OtherKernel[];
  readonly isNearStop: boolean;
  readonly stop: Stop | null;
}

const QUIET = 'jp-TfGuard-quiet jp-TfGuard-small';
const CHART_PIXELS = 128;

/** `endLabels` as in {@link memoryChart}. */
export function memoryDrawing(
  root: HTMLElement,
  endLabels: IChartOptions['endLabels'],
  trans: Trans
): IDrawing<IMemory> {
  const used = element('span', 'jp-TfGuard-big');
  const limit = element('span', QUIET);
  const curve = element('div', '');
  const bar = element('div', '');
  const holders = element('summary', QUIET);
  const details = element('div', `${QUIET} jp-TfGuard-resident`);
  const stop = element('div', '');
  const notice = element('div', '');
  root.append(
    element('div', 'jp-TfGuard-row jp-mod-wrap', used, limit),
    curve,
    bar,
    element('details', 'jp-TfGuard-Folded', holders, details),
    stop,
    notice
  );
  const title = trans.__('Memory in use');
  const chart = memoryChart(curve, { height: CHART_PIXELS, endLabels, title }, trans);
  const parts = { bar: barDrawing(bar), stop: stopDrawing(stop, trans) };
  const near = limitDrawing(notice, trans);
  return {
    draw: ({ host, isNearStop, marks, others, series, ...rest }) => {
      const shares = memoryShares(host, others);
      write(used, memoryText(host, trans));
      write(limit, limitText(host, trans));
      chart.draw({ series, marks, limit: host.limit, forecast: host.forecast });
      parts.bar.draw(shares && { shares, whole: host.limit?.bytes ?? 0 });
      write(holders, sharesText(shares, trans) || trans.__('this kernel'));
      write(details, host.details.join(' · '));
      parts.stop.draw({ stop: rest.stop, isNear: isNearStop });
      near.draw(isNearStop ? null : host);
    },
    dispose: () => chart.dispose?.()
  };
}

/** Hidden from screen readers: the text below has the same content. */
function barDrawing(
  root: HTMLElement
): IDrawing<{ readonly shares: IShares; readonly whole: number } | null> {
  const [own, ofOthers, rest] = ['this', 'notebook', 'rest'].map(kind =>
    element('i', `jp-mod-${kind}`)
  ) as [HTMLElement, HTMLElement, HTMLElement];
  root.className = 'jp-TfGuard-bar jp-mod-shares';
  root.setAttribute('aria-hidden', 'true');
  root.append(own, ofOthers, rest);
  return {
    draw: value => {
      root.hidden = value === null;
      if (value !== null) {
        const { shares, whole } = value;
        own.style.width = `${(100 * shares.own) / whole}%`;
        ofOthers.style.width = `${(100 * shares.ofOthers) / whole}%`;
        rest.style.width = `${(100 * shares.rest) / whole}%`;
      }
    }
  };
}

/** When memory will reach the limit, or that it is near; null hides it. A status, not an alarm. */
export function limitDrawing(root: HTMLElement, trans: Trans): IDrawing<Host | null> {
  const head = element('b', '');
  const rest = element('span', '');
  // Screen readers announce only a change of the first words, not each new rate.
  head.setAttribute('role', 'status');
  root.className = 'jp-TfGuard-Notice jp-mod-warning jp-TfGuard-LimitNotice';
  root.append(sign('', '▲'), element('div', '', head, ' ', rest));
  return {
    draw: host => {
      const notice = host && limitNotice(host, trans);
      root.hidden = notice === null;
      write(head, notice?.head ?? '');
      write(rest, notice?.rest ?? '');
    }
  };
}
