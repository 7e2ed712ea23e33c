import * as React from 'react';

import { CodeBlock } from '../parts/CodeBlock';
import { humanBytes } from '../units';
import type { Option } from '../wire';
import type { Trans } from '../trans';

/** The options of the guard: value, origin, description, and how to change it. */
export function Options(props: Options.IProps): React.JSX.Element {
  const { copy, options, trans } = props;
  return (
    <ul className="jp-TfGuard-list jp-TfGuard-Options">
      {options.map(option => (
        <Row key={option.name} option={option} copy={copy} trans={trans} />
      ))}
    </ul>
  );
}

export namespace Options {
  export interface IProps {
    readonly options: readonly Option[];
    readonly copy: CodeBlock.ICopy;
    readonly trans: Trans;
  }
}

function Row(props: {
  readonly option: Option;
  readonly copy: CodeBlock.ICopy;
  readonly trans: Trans;
}): React.JSX.Element {
  const { copy, option, trans } = props;
  const [isOpen, setOpen] = React.useState(false);
  const { change, code, help, name, note, value } = option;
  return (
    <li className="jp-TfGuard-Option">
      <div className="jp-TfGuard-row jp-mod-wrap">
        <span>
          <code>{name}</code> <b>{shown(value, name, trans)}</b>
        </span>
        <span className="jp-TfGuard-quiet jp-TfGuard-small">{originOf(option, trans)}</span>
      </div>
      <div className="jp-TfGuard-quiet jp-TfGuard-small">{help}</div>
      {note !== null && <div className="jp-TfGuard-small">▲ {note}</div>}
      <button
        type="button"
        className="jp-TfGuard-link"
        aria-expanded={isOpen}
        aria-label={trans.__('How to change %1', name)}
        onClick={() => setOpen(!isOpen)}
      >
        {trans.__('How to change it')}
      </button>
      {isOpen && (
        <div>
          <div className="jp-TfGuard-small">{change}</div>
          <CodeBlock code={code} copy={copy} />
        </div>
      )}
    </li>
  );
}

function shown(value: Option['value'], name: string, trans: Trans): string {
  if (value === null) {
    return trans.__('none');
  }
  return typeof value === 'number' && name.endsWith('_bytes') ? humanBytes(value) : String(value);
}

function originOf({ default: usual, name, origin, where }: Option, trans: Trans): string {
  return origin === 'default'
    ? trans.__('default')
    : trans.__('from %1; the default is %2', where ?? '', shown(usual, name, trans));
}
