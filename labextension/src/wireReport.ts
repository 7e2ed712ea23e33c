/** What the server extension sends of deaths: the counterpart of `report/wire.py`. See `wire.ts`. */
import type { Logged } from './wire';

/** Schema of the event that announces a death on Jupyter's own event stream. */
export const DEATH_SCHEMA_ID = 'https://schema.jupyter-tfguard.org/kernel_death/v1';

export type Confidence = 'certain' | 'likely' | 'possible';

export type CrashEntry = Readonly<{
  id: string;
  kernel_id: string | null;
  kernel_name: string | null;
  notebook_path: string | null;
  cause: string;
  confidence: Confidence;
  title: string;
  short_title: string;
  where: string | null;
  /** The cell that ran at the death. `cell_id` is its id in the notebook file. */
  cell: { readonly cell_id: string | null } | null;
  died_at: string;
  kernel_alive: boolean;
  unread: boolean;
  /** Id of the newest of a run of equal crashes, where this is another one of them. */
  same_as: string | null;
}>;

/** `raw` is the line of a log that a fact rests on, as it was written. */
export type Evidence = Readonly<{ source: string; text: string; raw?: string | null }>;

export type Advice = Readonly<{ title: string; text: string; code: string | null }>;

/** A moment of the curve. `kind` is one that `chart/eventKinds.ts` knows, or a newer one. */
export type TimelineEvent = Readonly<{ time: number; kind: string; label: string }>;

export type Sample = [number, number | null];

/** A metric beside the kernel's own memory; the limit is that of a GPU. */
export type Curve = Readonly<{
  name: string;
  title: string;
  samples: Sample[];
  limit_bytes: number | null;
  limit_name: string | null;
}>;

/** The kernel's memory up to its end. */
export type DeathMemory = Readonly<{
  samples: Sample[];
  limit_bytes: number | null;
  limit_name: string | null;
  events: TimelineEvent[];
  curves: Curve[];
  died: number | null;
}>;

export type Checkpoint = Readonly<{
  path: string;
  written_at: string | null;
  doubt: string | null;
  resume_code: string | null;
}>;

export type OtherFinding = Readonly<{
  cause: string;
  confidence: Confidence;
  title: string;
  evidence: Evidence[];
  advice: Advice[];
}>;

export type Report = CrashEntry &
  Readonly<{
    chips: string[];
    evidence: Evidence[];
    against: Evidence[];
    not_checked: string[];
    advice: Advice[];
    other_findings: OtherFinding[];
    /** Earlier deaths of this notebook with the same cause, within a day. */
    same_before_count: number;
    activity: { label: string; value: string; code: boolean }[];
    memory: DeathMemory | null;
    left: {
      metrics: { columns: string[]; rows: Logged[][] } | null;
      checkpoint: Checkpoint | null;
    };
    arrays: { name: string; bytes: number }[];
    native_tail: string[];
    python_stack: string[];
    versions: Record<string, string>;
  }>;

/** An option of the guard; `where` is the file or variable that decides, `code` what to write. */
export type Option = Readonly<{
  name: string;
  value: boolean | number | null;
  default: boolean | number | null;
  help: string;
  origin: 'default' | 'user_file' | 'server' | 'environment';
  where: string | null;
  note: string | null;
  change: string;
  code: string;
}>;

/** `text` is cut where a file is long; `redacted_count` are places where something was taken out. */
export type ExportPreview = Readonly<{
  files: { name: string; bytes: number; text: string; is_cut: boolean }[];
  redacted_count: number;
}>;

/** An emission of Jupyter's event stream; of our schema it announces a death. */
export type Emission = Readonly<{ schema_id: string; id?: unknown }>;
