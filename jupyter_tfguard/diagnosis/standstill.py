"""A kernel that hung until it ended: what the watcher observed, and what the kernel's events add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..record.stacks import Frame, stacks_of
from ..units import human_seconds
from .finding import Fact, Source
from .python_stacks import cell_frame
from .typed import dict_of, lines_of, number_of, text_of

# Keys are names of collectors.standstill.Wait, as written in the bundle.
_WAITS = {
    "lock": "waiting for a lock, without a timeout",
    "lock, with a timeout": "waiting for a lock repeatedly, with a timeout",
    "disk": "waiting for a disk or a network file system",
    "stopped": "stopped by a signal (SIGSTOP), not by its own code",
    "other": "waiting for a file, a connection or a child process",
}
_LOCKED = ("lock", "lock, with a timeout")
_STACK_LINES_LIMIT = 2000


@dataclass(frozen=True)
class StuckFork:
    """A forked child that waited for a lock.

    Attributes:
        pid: Its process id.
        after_import_seconds: How long after TensorFlow's import it was forked; negative = before. None = not known.
    """

    pid: int
    after_import_seconds: float | None


@dataclass(frozen=True)
class Standstill:
    """One hang.

    Attributes:
        seconds: Duration from the last sign of work to the end.
        noticed: Unix seconds when the watcher detected the hang.
        wait: What the main thread waited for, as named by the watcher.
        in_fit: True if a fit, evaluate, predict or training loop was running.
        frames: Frames of the main thread, innermost first; empty when not known.
        forks: Forked children that waited for a lock.
        lines: Stacks of all threads.
    """

    seconds: float
    noticed: float
    wait: str
    in_fit: bool
    frames: tuple[Frame, ...]
    forks: tuple[StuckFork, ...]
    lines: tuple[str, ...]

    @property
    def forked_too_late(self) -> StuckFork | None:
        """A child that was forked after TensorFlow's import and then waited for a lock that is never released."""
        late = (f for f in self.forks if (f.after_import_seconds or 0) > 0)
        return next(late, None)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Duration, kind of wait, Python line and forked children of the hang."""
        work = "a training step, " if self.in_fit else ""
        seen = f"For {human_seconds(self.seconds)}, a cell ran without {work}CPU time, input, output or GPU work"
        facts = [Fact(Source.SERVER, seen)]
        if (wait := wait_text(self.wait)) is not None:
            facts.append(Fact(Source.SERVER, f"Its main thread was {wait}"))
        if self.frames:
            facts.append(Fact(Source.KERNEL, f"Python was at {_python_line(self.frames)}"))
        for fork in self.forks[:3]:
            when = ""
            if fork.after_import_seconds is not None:
                order = "after" if fork.after_import_seconds > 0 else "before"
                span = human_seconds(abs(fork.after_import_seconds))
                when = f", forked {span} {order} TensorFlow was imported,"
            text = f"Its child process {fork.pid}{when} waited for a lock"
            facts.append(Fact(Source.SERVER, text))
        return tuple(facts)


def wait_text(wait: str) -> str | None:
    """``waiting for a lock``: readable text for a name of :class:`~..collectors.standstill.Wait`; None for other names."""
    return _WAITS.get(wait)


def standstill_of(bundle: dict[str, Any]) -> Standstill | None:
    """The hang that the server recorded in the bundle; None when there was none."""
    seen = dict_of(dict_of(bundle.get("server")).get("hang"))
    since = number_of(seen.get("since"))
    died = number_of(dict_of(bundle.get("identity")).get("died"))
    if since is None or died is None or died < since:
        return None
    events = dict_of(bundle.get("kernel")).get("events")
    journal = [dict_of(event) for event in events] if isinstance(events, list) else []
    lines = lines_of(seen.get("stacks"))[:_STACK_LINES_LIMIT]
    main = text_of(seen.get("main_thread"))
    return Standstill(
        seconds=died - since,
        noticed=number_of(seen.get("noticed")) or died,
        wait=text_of(seen.get("wait")) or "",
        in_fit=bool(seen.get("in_fit")),
        frames=tuple(stacks_of(lines).get(main or "", ())),
        forks=_forks(seen.get("forks"), _imported(journal)),
        lines=tuple(lines),
    )


def _forks(found: object, imported: float | None) -> tuple[StuckFork, ...]:
    forks = []
    for fork in map(dict_of, found if isinstance(found, (list, tuple)) else ()):
        pid, started = number_of(fork.get("pid")), number_of(fork.get("started"))
        if pid is not None and text_of(fork.get("wait")) in _LOCKED:
            known = imported is not None and started is not None
            after = (started or 0) - (imported or 0) if known else None
            forks.append(StuckFork(int(pid), after))
    return tuple(forks)


def _imported(events: list[dict[str, Any]]) -> float | None:
    times = (
        number_of(event.get("t"))
        for event in events
        if event.get("kind") == "import" and event.get("module") == "tensorflow"
    )
    return next((time for time in times if time is not None), None)


def _python_line(frames: tuple[Frame, ...]) -> str:
    """The innermost Python line, and the line of the cell."""
    inner = frames[0]
    lines = [f'  File "{f.file}", line {f.line} in {f.name}' for f in frames]
    cell = cell_frame(lines)
    if cell is not None and cell_frame(lines[:1]):
        return cell
    name = inner.file.replace("\\", "/").rsplit("/", 1)[-1]
    where = f"{name}, line {inner.line}, in {inner.name}"
    return f"{where}, called from {cell}" if cell else where
