/** Types of the server's messages about crashes: the counterpart of `report/wire.py`. See `wire.ts`. */

/** A logged value: a number, a word for values that JSON cannot represent (`nan`, `inf`), or null. */
export type Logged = number | string | null;

/** Schema of the event that announces a crash on Jupyter's event stream. */
export const CRASH_SCHEMA_ID = 'https://schema.jupyter-tfguard.org/kernel_crash/v1';

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
  /** The cell that was running. `cell_id` is its ID in the notebook file. */
  cell: { readonly cell_id: string | null } | null;
  crashed_at: string;
  kernel_alive: boolean;
  unread: boolean;
  /** Why the report is only in the memory of the server, and what to do; missing in a saved report. */
  unsaved?: string | null;
  /** ID of the newest crash with the same cause, if this crash is grouped under it. */
  same_as: string | null;
}>;

/** `raw` is the unchanged log line behind a fact. */
export type Evidence = Readonly<{ source: string; text: string; raw?: string | null }>;

export type Advice = Readonly<{ title: string; text: string; code: string | null }>;

/** An event on the curve. `kind` is one of `chart/eventKinds.ts`, or a newer one. */
export type TimelineEvent = Readonly<{ time: number; kind: string; label: string }>;

export type Sample = [number, number | null];

/** Another metric besides the kernel's memory; the limit is that of a GPU. */
export type Curve = Readonly<{
  name: string;
  title: string;
  samples: Sample[];
  limit_bytes: number | null;
  limit_name: string | null;
}>;

/** The kernel's memory until it ended. */
export type CrashMemory = Readonly<{
  samples: Sample[];
  limit_bytes: number | null;
  limit_name: string | null;
  events: TimelineEvent[];
  curves: Curve[];
  crash_time: number | null;
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
    /** Earlier crashes of this notebook with the same cause, within a day. */
    same_before_count: number;
    activity: { label: string; value: string; code: boolean }[];
    memory: CrashMemory | null;
    left: {
      metrics: { columns: string[]; rows: Logged[][] } | null;
      checkpoint: Checkpoint | null;
    };
    arrays: { name: string; bytes: number }[];
    stderr_tail: string[];
    python_stack: string[];
    versions: Record<string, string>;
  }>;

/** An option of the guard; `where` is the file or variable that sets it, `code` the text to add there. */
export type Option = Readonly<{
  name: string;
  value: boolean | number | string | null;
  default: boolean | number | string | null;
  help: string;
  origin: 'default' | 'user_file' | 'server' | 'environment';
  where: string | null;
  note: string | null;
  change: string;
  code: string;
}>;

/** A part that can be left out of an export. */
export type ExportPart = 'cell-text' | 'stderr' | 'path' | 'functions';

/** Parts that are left out of an export, and words that are replaced in all files. */
export type ExportChoices = Readonly<{
  without: readonly ExportPart[];
  replace: readonly string[];
}>;

/**
 * `text` is truncated for a long file; `redacted_count` is the number of redactions; `marks` replace what was removed;
 * `flagged` may be secrets or names.
 */
export type ExportPreview = Readonly<{
  files: { name: string; bytes: number; text: string; is_cut: boolean; removed_count: number }[];
  redacted_count: number;
  marks: string[];
  flagged: { text: string; why: string; count: number }[];
}>;

/** An event of Jupyter's event stream; with our schema it announces a crash. */
export type Emission = Readonly<{ schema_id: string; id?: unknown }>;
