/** What is told of deaths, and of the guard's options: see `wire.ts`, and `report/wire.py` for the other side. */
import { flag, listOf, mapOf, number, orNull, shape, text, tuple, word } from './check';
import type { Checked } from './check';
import { logged, mark } from './wireLive';

const confidence = word('certain', 'likely', 'possible');

/** The cell that ran at a death. `cell_id` is its id in the notebook file. */
const deadCell = shape({ cell_id: orNull(text), execution_count: orNull(number) });

const crashEntryKeys = {
  id: text,
  kernel_id: orNull(text),
  pid: orNull(number),
  kernel_name: orNull(text),
  notebook_path: orNull(text),
  cause: text,
  confidence,
  title: text,
  short_title: text,
  because: listOf(text),
  where: orNull(text),
  cell: orNull(deadCell),
  died_at: text,
  kernel_alive: flag,
  unread: flag,
  /** Id of the newest of a run of equal crashes, where this is another one of them. */
  same_as: orNull(text)
};

export const crashEntry = shape(crashEntryKeys);

/** `raw` is the line of a log that a fact rests on, as it was written. */
const evidence = shape({ source: text, text, raw: orNull(text) });

const advice = shape({ title: text, text, code: orNull(text) });

/** A moment of the curve. `kind` is one that `chart/eventKinds.ts` knows, or a newer one. */
const timelineEvent = shape({ time: number, kind: text, label: text });

/** A metric beside the kernel's own memory; the limit is that of a GPU. */
const curve = shape({
  name: text,
  title: text,
  unit: text,
  samples: listOf(tuple(number, orNull(number))),
  limit_bytes: orNull(number),
  limit_name: orNull(text)
});

export const report = shape({
  ...crashEntryKeys,
  chips: listOf(text),
  evidence: listOf(evidence),
  against: listOf(evidence),
  not_checked: listOf(text),
  advice: listOf(advice),
  // Counted deaths, and reports of older versions, tell the titles alone.
  other_findings: listOf(
    shape({
      cause: text,
      confidence,
      title: text,
      evidence: orNull(listOf(evidence)),
      advice: orNull(listOf(advice))
    })
  ),
  /** Earlier deaths of this notebook with the same cause, within a day. */
  same_before_count: orNull(number),
  activity: listOf(shape({ label: text, value: text, code: flag })),
  memory: orNull(
    shape({
      samples: listOf(tuple(number, orNull(number))),
      limit_bytes: orNull(number),
      limit_name: orNull(text),
      // Reports of older versions tell of cells and fits alone, as marks.
      marks: orNull(listOf(mark)),
      events: orNull(listOf(timelineEvent)),
      curves: orNull(listOf(curve)),
      died: orNull(number)
    })
  ),
  left: shape({
    metrics: orNull(shape({ columns: listOf(text), rows: listOf(listOf(logged)) })),
    checkpoint: orNull(
      shape({
        path: text,
        written_at: orNull(text),
        doubt: orNull(text),
        resume_code: orNull(text)
      })
    )
  }),
  arrays: listOf(shape({ name: text, bytes: number })),
  native_tail: listOf(text),
  python_stack: listOf(text),
  versions: mapOf(orNull(text))
});

const plainValue = orNull((value: unknown, where: string) =>
  typeof value === 'boolean' ? value : number(value, where)
);

/** An option of the guard; `where` is the file or variable that decides, `code` what to write. */
export const option = shape({
  name: text,
  value: plainValue,
  default: plainValue,
  help: text,
  origin: word('default', 'user_file', 'server', 'environment'),
  where: orNull(text),
  note: orNull(text),
  change: text,
  code: text
});

/** `text` is cut where a file is long; `redacted_count` are places where something was taken out. */
export const exportPreview = shape({
  files: listOf(shape({ name: text, bytes: number, text, is_cut: flag })),
  redacted_count: number
});

export const death = shape({
  id: text,
  kernel_id: text,
  cause: text,
  confidence,
  kernel_alive: flag
});

export type Confidence = Checked<typeof confidence>;
export type CrashEntry = Checked<typeof crashEntry>;
export type Evidence = Checked<typeof evidence>;
export type Report = Checked<typeof report>;
export type Curve = Checked<typeof curve>;
export type TimelineEvent = Checked<typeof timelineEvent>;
export type Advice = Report['advice'][number];
export type Death = Checked<typeof death>;
export type ExportPreview = Checked<typeof exportPreview>;
export type Option = Checked<typeof option>;
