import * as React from 'react';

import type { IChartOptions } from '../chart/plot';
import { TimeChart } from '../chart/timeChart';
import type { IChartData, IPoints } from '../chart/timeChart';
import type { Span } from '../chart/span';
import { Drawn } from '../parts/Drawn';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Curve, CrashMemory } from '../wire';
import type { Trans } from '../trans';

/** Maximum number of GPU charts. */
const CARDS_LIMIT = 4;

/** Dash styles of the lines after the first one. */
const DASH_NAMES = ['dashed', 'dotted', 'mixed'];

/** The kernel's memory until it ended, with other metrics; below, each GPU on the same time axis. */
export function CrashChart(props: CrashChart.IProps): React.JSX.Element | null {
  const { memory, isAlive, trans } = props;
  const [zoom, setZoom] = React.useState<Span | null>(null);
  const [hidden, setHidden] = React.useState<readonly string[]>([]);
  const syncName = React.useId();
  const pictures = React.useMemo(() => picturesOf(memory, isAlive, trans), [memory]);
  if (pictures === null) {
    return null;
  }
  const toggle = (name: string): void =>
    setHidden(hidden.includes(name) ? hidden.filter(other => other !== name) : [...hidden, name]);
  return (
    <div className="jp-TfGuard-Timeline">
      {pictures.map(({ data, name, others, height }) => (
        <React.Fragment key={name}>
          <Picture
            data={data}
            others={others}
            hidden={hidden}
            zoom={zoom}
            options={{
              height,
              formatValue: humanBytes,
              formatTick: tickBytes,
              formatTime: seconds => clock(seconds),
              endLabels: null,
              onZoom: setZoom,
              syncName
            }}
          />
          {(others.length > 0 || pictures.length > 1) && (
            <div className="jp-TfGuard-legend">
              <span className="jp-TfGuard-line">{name}</span>
              {others.map((curve, index) => (
                <button
                  key={curve.name}
                  type="button"
                  className={`jp-TfGuard-line jp-mod-${DASH_NAMES[index % 3]}`}
                  aria-pressed={!hidden.includes(curve.name)}
                  onClick={() => toggle(curve.name)}
                >
                  {curve.title}
                </button>
              ))}
            </div>
          )}
        </React.Fragment>
      ))}
      <div className="jp-TfGuard-row jp-TfGuard-quiet jp-TfGuard-small">
        <span>{trans.__('Zoom: drag, or press + and −. Move: arrow keys. Show all: 0.')}</span>
        {zoom !== null && (
          <button type="button" className="jp-TfGuard-button" onClick={() => setZoom(null)}>
            {trans.__('Show all')}
          </button>
        )}
      </div>
    </div>
  );
}

export namespace CrashChart {
  export interface IProps {
    readonly memory: CrashMemory;
    /** A child process died, not the kernel. */
    readonly isAlive: boolean;
    readonly trans: Trans;
  }
}

function Picture(props: {
  data: IChartData;
  others: readonly Curve[];
  hidden: readonly string[];
  zoom: Span | null;
  options: IChartOptions;
}): React.JSX.Element {
  const { data, others, hidden, zoom, options } = props;
  const shown = React.useMemo(() => {
    const lines = others.map(curve => pointsOf(hidden.includes(curve.name) ? [] : curve.samples));
    return { ...data, lines, zoom };
  }, [data, others, hidden, zoom]);
  return <Drawn make={host => new TimeChart(host, options)} read={() => shown} />;
}

interface IPicture {
  /** What the first line shows. */
  readonly name: string;
  readonly data: IChartData;
  readonly others: readonly Curve[];
  readonly height: number;
}

function picturesOf(memory: CrashMemory, isAlive: boolean, trans: Trans): IPicture[] | null {
  const { samples, limit_bytes, limit_name, crash_time: died } = memory;
  const first = samples[0];
  const last = samples[samples.length - 1];
  if (first === undefined || last === undefined) {
    return null;
  }
  const until = Math.max(last[0], died ?? 0);
  const range: Span = [first[0], until > first[0] ? until : first[0] + 1];
  const end =
    died === null
      ? null
      : {
          time: died,
          label: isAlive
            ? trans.__('child process ended %1', clock(died))
            : trans.__('ended %1', clock(died))
        };
  const limitLabel = [limit_name ?? trans.__('limit'), humanBytes(limit_bytes)].join(' ');
  const peak = humanBytes(peakOf(samples));
  const { curves } = memory;
  const cards = curves.filter(({ name }) => name.endsWith('.own_bytes')).slice(0, CARDS_LIMIT);
  return [
    {
      name: trans.__('This kernel'),
      height: 210,
      others: curves.filter(({ name }) => !name.startsWith('gpu')),
      data: {
        points: pointsOf(samples),
        range,
        limit: limit_bytes === null ? null : { value: limit_bytes, label: limitLabel },
        marks: memory.events.filter(({ kind }) => kind !== 'crash'),
        end,
        description:
          limit_bytes === null
            ? trans.__('Kernel memory before the crash: peak %1', peak)
            : trans.__('Kernel memory before the crash: peak %1; %2', peak, limitLabel)
      }
    },
    ...cards.map(card => {
      const prefix = card.name.slice(0, card.name.indexOf('.') + 1);
      const limit = card.limit_bytes;
      const label = `${card.limit_name ?? ''} ${humanBytes(limit)}`;
      return {
        name: card.title,
        height: 120,
        others: curves.filter(curve => curve !== card && curve.name.startsWith(prefix)),
        data: {
          points: pointsOf(card.samples),
          range,
          limit: limit === null ? null : { value: limit, label },
          marks: [],
          end: end && { ...end, label: '' },
          description: trans.__('%1: peak %2', card.title, humanBytes(peakOf(card.samples)))
        }
      };
    })
  ];
}

function pointsOf(samples: Curve['samples']): IPoints {
  return { times: samples.map(([time]) => time), values: samples.map(([, value]) => value) };
}

function peakOf(samples: Curve['samples']): number | null {
  return samples.reduce<number | null>(
    (highest, [, value]) => (value !== null && value > (highest ?? -1) ? value : highest),
    null
  );
}
