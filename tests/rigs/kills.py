"""What must be there after a kill: the model that a recording is held against. What was written: lives.py."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.metrics import Sample
from jupyter_tfguard.record import recording as recording_module
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from jupyter_tfguard.record.journal import EVENT_LIMIT_BYTES
from jupyter_tfguard.record.records import RECORD_HEAD_BYTES, intact_records, read_header
from tests.rigs.lives import (
    END,
    EVENT,
    HEADER,
    PROGRESS,
    REMOVAL,
    SAMPLE,
    WORDS,
    Life,
    Plan,
    event_of,
    number_of,
    pad_of,
    sample_of,
)

_ZEROS = bytes(4096)
RINGS = tuple(f"{name}.ring" for name in ("samples", "seconds", "minutes", "events", "progress"))


class _Wrong(Exception):
    """The model does not hold: which count goes up, and why."""

    def __init__(self, count: str, text: str) -> None:
        super().__init__(text)
        self.count = count


@dataclass(frozen=True)
class _Between:
    """What had been finished before the file was read, and what had been begun after: the same for the dead."""

    finished: int
    begun: int

    def check(self, kind: str, shown: list[int], oldest: int) -> None:
        """The numbers shown rise, hold all that must be there, and none that was never begun."""
        wanted = range(max(1, oldest), self.finished + 1)
        missing = sorted(set(wanted) - set(shown))
        if missing:
            raise _Wrong("lost_records", f"{kind} {missing[:5]} of {self} are not there")
        if shown != sorted(set(shown)) or (shown and not 0 < shown[-1] <= self.begun):
            raise _Wrong("torn_shown", f"{kind} {shown[-5:]} of {self} were never written so")


def judge(life: Life, *, dead: bool) -> dict[str, str]:
    """Read the recording and hold it against the model; what is wrong, by the name of its count."""
    page = life.page
    before = list(page.words[:WORDS])
    try:
        contents = read_recording(life.path)
    except RecordUnreadable as bad:
        after = list(page.words[:WORDS])
        if before[HEADER + 1] and not after[REMOVAL]:
            return {"unreadable": str(bad)}
        return {}
    except Exception as bad:
        return {"unreadable": repr(bad)}
    after = list(page.words[:WORDS])
    if contents.problems and not after[REMOVAL]:
        return {"unreadable": "; ".join(contents.problems)}
    if dead and (torn := _torn(life.path)):
        return {"torn_written": torn}
    try:
        _Model(life.plan, before, after, dead).check(contents)
    except _Wrong as wrong:
        return {wrong.count: str(wrong)}
    except (KeyError, TypeError, ValueError) as bad:
        return {"torn_shown": f"a value of another shape was shown: {bad!r}"}
    return {}


def _torn(path: Path) -> str:
    """Where a record lies that is neither whole nor zeros: the one before it there was lost with it. Empty: nowhere."""
    for name in RINGS:
        try:
            content = (path / name).read_bytes()
        except FileNotFoundError:
            continue
        if not content:
            continue
        try:
            size = read_header(content).record_bytes
        except RecordUnreadable:
            return f"{name} has no header"
        for start in range(8192, len(content) - size + 1, size):
            record = content[start : start + size]
            if record != _ZEROS[:size] and not list(intact_records(record, size)):
                return f"{name} at {start}"
    return ""


class _Model:
    def __init__(self, plan: Plan, before: list[int], after: list[int], dead: bool) -> None:
        self._plan, self._before, self._after = plan, before, after
        # A folder that is being removed may lack any file; what it still shows is right all the same.
        self._removed = bool(after[REMOVAL])
        self._going = self._removed and not dead

    def _between(self, word: int) -> _Between:
        return _Between(0 if self._removed else self._before[word + 1], self._after[word])

    def check(self, contents: RecordingContents) -> None:
        """Raises :class:`_Wrong`."""
        self._check_header(contents.header)
        self._check_samples(contents.samples)
        self._check_events(contents.events)
        self._check_progress(contents.progress)
        marked = (contents.end or {}).get("reason") == "shutdown"
        # What a kill leaves of a removal is reported as a death if it lacks the mark. Removed while it was read: it is gone.
        if self._before[END + 1] and not marked and not self._going:
            raise _Wrong("lost_records", "the mark of an orderly end is not there")

    def _check_header(self, header: dict[str, Any]) -> None:
        number = header["number"]
        if number < self._before[HEADER + 1]:
            raise _Wrong("lost_records", f"the header is number {number}")
        if number > self._after[HEADER] or header["pad"] != pad_of(self._plan.seed, number):
            raise _Wrong("torn_shown", f"the header, number {number}")

    def _check_samples(self, shown: list[Sample]) -> None:
        between = self._between(SAMPLE)
        oldest = between.begun - self._plan.samples + 1
        between.check("sample", [sample.sequence for sample in shown], oldest)
        for sample in shown:
            if sample != sample_of(self._plan, sample.sequence):
                raise _Wrong("torn_shown", str(sample))

    def _check_events(self, shown: list[dict[str, Any]]) -> None:
        between = self._between(EVENT)
        seed = self._plan.seed
        ends = [0]
        for number in range(1, between.begun + 1):
            ends.append(ends[-1] + len(_event_parts(event_of(seed, number))))
        # The oldest event whose first record nothing later has the place of.
        oldest = sum(end + 1 <= ends[-1] - self._plan.events for end in ends[:-1]) + 1
        between.check("event", [event["number"] for event in shown], oldest)
        for event in shown:
            wanted = _kept(event_of(seed, event["number"])) | {"n": ends[event["number"]]}
            if {name: event[name] for name in event if name not in ("t", "m")} != wanted:
                raise _Wrong("torn_shown", str(event)[:500])

    def _check_progress(self, shown: dict[str, Any] | None) -> None:
        between = self._between(PROGRESS)
        # A living writer may have turned round both records while the file was read.
        needed = between.finished if between.begun - between.finished <= 1 else 0
        number = shown["number"] if shown else 0
        if number < needed:
            raise _Wrong("lost_records", f"progress {number} of {between}")
        if shown and (
            number > between.begun
            or shown["check"] != number_of(self._plan.seed, "progress", number)
        ):
            raise _Wrong("torn_shown", str(shown))


def _kept(event: dict[str, Any]) -> dict[str, Any]:
    """The event as the recording keeps it: of one that is too long the texts are cut."""
    if len(json.dumps(event, ensure_ascii=False).encode()) <= EVENT_LIMIT_BYTES:
        return event
    return event | {"text": event["text"][:200]}


def _event_parts(event: dict[str, Any]) -> range:
    text = json.dumps(_kept(event), ensure_ascii=False).encode()
    return range(0, len(text), recording_module.EVENT_RECORD_BYTES - RECORD_HEAD_BYTES)
