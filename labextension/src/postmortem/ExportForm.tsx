import * as React from 'react';

import { messageOf } from '../api';
import { humanBytes } from '../units';
import type { ExportChoices, ExportPart, ExportPreview } from '../wire';
import type { Trans } from '../trans';

import { Marked } from './Marked';

/** What the user leaves out of an export and replaces in it, what may still be a secret, and the files. */
export function ExportForm(props: ExportForm.IProps): React.JSX.Element {
  const { first, onChoices, read, trans } = props;
  const [without, setWithout] = React.useState<readonly ExportPart[]>([]);
  const [replace, setReplace] = React.useState<readonly string[]>([]);
  const [preview, setPreview] = React.useState(first);
  const [state, setState] = React.useState('');
  const newest = React.useRef(0);

  const choose = (choices: ExportChoices): void => {
    setWithout(choices.without);
    setReplace(choices.replace);
    onChoices(choices);
    const asked = ++newest.current;
    setState(trans.__('Updating the preview…'));
    read(choices).then(
      found => {
        if (asked === newest.current) {
          setPreview(found);
          setState('');
        }
      },
      (error: unknown) => {
        if (asked === newest.current) {
          setState(messageOf(error));
        }
      }
    );
  };
  const add = (word: string): void => {
    if (!replace.includes(word)) {
      choose({ without, replace: [...replace, word] });
    }
  };
  const parts: [ExportPart, string][] = [
    ['cell-text', trans.__('Text of cells')],
    ['stderr', trans.__('Lines of stderr')],
    ['path', trans.__('Paths')],
    ['functions', trans.__('Names of functions')]
  ];
  return (
    <div className="jp-TfGuard-Export">
      <p>
        {trans.__(
          'Removed items (secrets, home folders, addresses, user and machine names): %1. Check the files before you share them.',
          preview.redacted_count
        )}
      </p>
      <Flagged flagged={preview.flagged} add={add} trans={trans} />
      <fieldset>
        <legend>{trans.__('Leave out')}</legend>
        {parts.map(([part, label]) => (
          <label key={part}>
            <input
              type="checkbox"
              checked={without.includes(part)}
              onChange={({ target }) =>
                choose({
                  without: target.checked ? [...without, part] : without.filter(p => p !== part),
                  replace
                })
              }
            />
            {label}
          </label>
        ))}
      </fieldset>
      <Words
        words={replace}
        add={add}
        remove={word => choose({ without, replace: replace.filter(w => w !== word) })}
        trans={trans}
      />
      <p className="jp-TfGuard-quiet" role="status">
        {state}
      </p>
      <Files preview={preview} trans={trans} />
    </div>
  );
}

function Flagged(props: {
  flagged: ExportPreview['flagged'];
  add: (word: string) => void;
  trans: Trans;
}): React.JSX.Element | null {
  const { add, flagged, trans } = props;
  if (flagged.length === 0) {
    return null;
  }
  return (
    <section className="jp-TfGuard-Flagged" aria-label={trans.__('May be a secret or a name')}>
      <h4>{trans.__('May be a secret or a name')}</h4>
      <ul>
        {flagged.map(({ text, why, count }) => (
          <li key={text}>
            <code>{text}</code>
            <span className="jp-TfGuard-quiet">
              {why} · {trans._n('%1 place', '%1 places', count)}
            </span>
            <button
              type="button"
              className="jp-TfGuard-button"
              aria-label={trans.__('Replace %1', text)}
              onClick={() => add(text)}
            >
              {trans.__('Replace')}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Words(props: {
  words: readonly string[];
  add: (word: string) => void;
  remove: (word: string) => void;
  trans: Trans;
}): React.JSX.Element {
  const { add, remove, trans, words } = props;
  const [word, setWord] = React.useState('');
  const id = React.useId();
  return (
    <div className="jp-TfGuard-Words">
      <label htmlFor={id}>{trans.__('Replace in all files')}</label>
      <input
        id={id}
        className="jp-mod-styled"
        type="text"
        maxLength={500}
        autoComplete="off"
        placeholder={trans.__('A name or any other word')}
        value={word}
        onChange={({ target }) => setWord(target.value)}
      />
      <button
        type="button"
        className="jp-TfGuard-button"
        disabled={word.trim().length < 2}
        onClick={() => {
          add(word.trim());
          setWord('');
        }}
      >
        {trans.__('Replace')}
      </button>
      {words.map(one => (
        <button
          key={one}
          type="button"
          className="jp-TfGuard-button"
          aria-label={trans.__('Do not replace %1', one)}
          onClick={() => remove(one)}
        >
          {one} ✕
        </button>
      ))}
    </div>
  );
}

function Files(props: { preview: ExportPreview; trans: Trans }): React.JSX.Element {
  const { preview, trans } = props;
  const { files, flagged, marks } = preview;
  return (
    <>
      {files.map(({ name, bytes, text, is_cut, removed_count }) => (
        <details key={name}>
          <summary>
            {name} · {humanBytes(bytes)}
            {removed_count > 0 && ` · ${trans._n('%1 removed', '%1 removed', removed_count)}`}
          </summary>
          <pre tabIndex={0}>
            <Marked text={text} removed={marks} flagged={flagged.map(flag => flag.text)} />
            {is_cut && trans.__('… The exported file has the rest.')}
          </pre>
        </details>
      ))}
    </>
  );
}

export namespace ExportForm {
  export interface IProps {
    /** The preview without any choice. */
    readonly first: ExportPreview;
    /** Reads the preview with other choices. */
    readonly read: (choices: ExportChoices) => Promise<ExportPreview>;
    readonly onChoices: (choices: ExportChoices) => void;
    readonly trans: Trans;
  }
}
