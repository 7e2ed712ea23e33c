"""The JSON documents that scripts may rely on, as types: ``jupyter tfguard schema`` makes their JSON Schemas.

A new field leaves `schema_version` as it is. Removing or renaming a field, or giving it another meaning, raises it. None is
"not known" or "does not apply". Sizes are in bytes and times in Unix seconds, except names in ``_at`` (ISO 8601, UTC).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict, cast

from ..diagnosis.finding import Confidence, Source


class Fact(TypedDict):
    """One piece of evidence."""

    source: Annotated[str, Source]
    text: str
    raw: Annotated[str | None, "The line of a log that it rests on."]


class Advice(TypedDict):
    """One thing to do."""

    title: str
    text: Annotated[str, "The reason, with numbers; may be empty."]
    code: str | None


class Finding(TypedDict):
    """One more cause that fits, or something else that was wrong."""

    cause: str
    confidence: Annotated[str, Confidence]
    title: str
    evidence: list[Fact]
    against: Annotated[list[Fact], "What contradicts it."]
    advice: list[Advice]


class RunningCell(TypedDict):
    """The cell that ran when the kernel crashed."""

    cell_id: Annotated[str | None, "Its id in the notebook."]
    execution_count: int | None


class Stored(TypedDict, total=False):
    """What the store adds; missing in a report of a bundle file."""

    unread: Annotated[bool, "No person has seen the report."]
    unsaved: Annotated[
        str, "Why the report is only in memory, and what to do; missing in a saved report."
    ]


class Summary(Stored):
    """What a list shows of one crash."""

    id: Annotated[str, "As `jupyter tfguard why ID` takes it."]
    kernel_id: str | None
    kernel_name: str | None
    pid: int | None
    notebook_path: str | None
    cause: Annotated[str, "Name of the cause, for instance cgroup_oom."]
    confidence: Annotated[str, Confidence]
    title: str
    short_title: str
    because: Annotated[list[str], "The evidence, as sentences."]
    signal: Annotated[str | None, "The signal that ended it, for instance SIGKILL."]
    where: Annotated[str | None, "Cell, epoch and step."]
    cell: RunningCell | None
    crashed_at: str
    kernel_alive: Annotated[bool, "True when a child process was killed and the kernel still runs."]
    next_step: Annotated[str | None, "Title of the first advice."]


class Entry(Summary):
    """One crash in the list."""

    announced: Annotated[bool, "An open page or the next kernel has shown it."]
    same_as: Annotated[str | None, "Id of the newest crash of a run of equal ones."]


class Crashes(TypedDict):
    """All crashes that are kept, newest first."""

    schema_version: Literal[1]
    crashes: list[Entry]


class Row(TypedDict):
    """One line about what the user was doing."""

    label: str
    value: str
    code: Annotated[bool, "The value is code."]


class Moment(TypedDict):
    """Something that happened while memory was recorded."""

    time: float
    kind: Annotated[
        str,
        "cell, fit, epoch, checkpoint, gpu_oom, memory_stop, leak, warning, hang or crash.",
    ]
    label: str


class Curve(TypedDict):
    """A second curve beside the kernel's own memory."""

    name: str
    title: str
    unit: Literal["bytes"]
    samples: Annotated[list[list[float]], "Pairs of time and bytes."]
    limit_bytes: int | None
    limit_name: str | None


class Memory(TypedDict):
    """The kernel's memory until the crash."""

    samples: Annotated[list[list[float]], "Pairs of time and bytes, at most 600."]
    limit_bytes: int | None
    limit_name: str | None
    peak_bytes: int | None
    events: list[Moment]
    curves: list[Curve]
    crash_time: float
    source: Annotated[str, Source]


class MetricsTable(TypedDict):
    """The logged metrics, one row per epoch."""

    columns: list[str]
    rows: Annotated[list[list[float | str | None]], 'JSON has no NaN: it is the text "nan".']


class Checkpoint(TypedDict):
    """The last checkpoint of a training run."""

    path: str
    written_at: str | None
    doubt: Annotated[str | None, "Why the file may be damaged."]
    resume_code: str | None


class Left(TypedDict):
    """What is left of a training run."""

    metrics: MetricsTable | None
    checkpoint: Checkpoint | None


class Array(TypedDict):
    """A large array that the notebook held."""

    name: str
    bytes: int


class CausePage(TypedDict):
    """What the documentation says about one cause."""

    cause: str
    means: str
    recognised: str


class Report(Summary):
    """Why one kernel crashed, how we know, and what to do."""

    schema_version: Literal[1]
    chips: Annotated[list[str], "Short facts."]
    evidence: list[Fact]
    against: Annotated[list[Fact], "What contradicts the cause."]
    not_checked: list[str]
    advice: Annotated[list[Advice], "The most effective first, at most three."]
    other_findings: list[Finding]
    same_before_count: Annotated[
        int, "Earlier crashes of this cause in this notebook, within a day."
    ]
    activity: list[Row]
    memory: Memory | None
    left: Left
    arrays: list[Array]
    stderr_tail: Annotated[list[str], "The last lines of the kernel's stderr."]
    python_stack: list[str]
    versions: Annotated[dict[str, str], "Version by library."]


class SharedReport(Report, total=False):
    """Why one kernel crashed; an export adds facts for a reader elsewhere."""

    setting: Annotated[list[Row], "Machine, memory limit, stop, other kernels by size."]
    causes: Annotated[list[CausePage], "What the causes in this report mean."]


class LogFact(Fact):
    """One piece of evidence from a pasted log."""

    line: Annotated[int | None, "Its line number in the pasted text."]


class LogFinding(TypedDict):
    """One cause that fits a pasted log."""

    cause: str
    confidence: Annotated[str, Confidence]
    title: str
    evidence: list[LogFact]
    against: list[LogFact]
    advice: list[Advice]


class Explanation(TypedDict):
    """What a pasted log says about a crash, the best finding first."""

    schema_version: Literal[1]
    findings: list[LogFinding]
    not_checked: list[str]


def crashes_json(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The document :class:`Crashes` of the store's entries."""
    found: Crashes = {"schema_version": 1, "crashes": cast(list[Entry], entries)}
    return cast(dict[str, Any], found)
