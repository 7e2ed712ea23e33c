"""A kernel that hung until it ended: what the watcher observed, and what the kernel's events add."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from ..decode import dict_of, lines_of, list_of, number_of, text_of
from ..record.events import Event, Import, events_of
from ..record.stacks import Frame, feeding, stacks_of, waits_in_library
from ..units import human_seconds
from .finding import Fact, Source
from .python_stacks import cell_frame

_UNKNOWN_OUTSIDE = "a file, a connection or a child process"
_DISK = "a disk or a network file system"
# Keys are names of collectors.process_activity.Wait, as written in the bundle.
_WAITS = {
    "lock": "waiting for a lock, without a timeout",
    "lock, with a timeout": "waiting for a lock repeatedly, with a timeout",
    "disk": f"waiting for {_DISK}",
    "stopped": "stopped by a signal (SIGSTOP), not by its own code",
    "other": f"waiting for {_UNKNOWN_OUTSIDE}",
}
RUNNING = "running"
_LOCKED = ("lock", "lock, with a timeout")
# What the innermost frames of a thread wait for: part of a file name of Python's library, and the words for it. The first that
# fits counts: a wait for a child also uses selectors and pipes.
_OUTSIDE = (
    ("subprocess.py", "a child process"),
    ("multiprocessing/popen_", "a child process"),
    ("multiprocessing/connection.py", "another process"),
    ("ssl.py", "a connection"),
    ("socket.py", "a connection"),
    ("http/client.py", "a connection"),
)
_INNERMOST = 4
# Threads of the kernel and of a debugger wait for connections all the time.
_SERVICES = ("/ipykernel/", "/jupyter_tfguard/", "/IPython/", "/debugpy/", "pydevd")
# ipykernel 6 runs every thread of the user in a function of its own.
_NO_SERVICE = "run_closure"
_WORKERS = ("/multiprocessing/", "/concurrent/futures/", "/joblib/")
_STACK_LINES_LIMIT = 2000


@dataclass(frozen=True)
class ForkedChild:
    """A forked child of a kernel that hung.

    Attributes:
        pid: Its process id.
        wait: What its main thread waited for, as named by the watcher.
        after_import_seconds: How long after TensorFlow's import it was forked; negative = before. None = not known.
    """

    pid: int
    wait: str
    after_import_seconds: float | None

    @property
    def is_stuck(self) -> bool:
        """True if it waited for a lock."""
        return self.wait in _LOCKED

    @property
    def is_late(self) -> bool:
        """True if it was forked after TensorFlow had been imported."""
        return (self.after_import_seconds or 0) > 0


@dataclass(frozen=True)
class SeenHang:
    """One hang.

    Attributes:
        seconds: Duration from the last sign of work to the end.
        noticed: Unix seconds when the watcher detected the hang.
        wait: What the main thread waited for, as named by the watcher.
        in_fit: True if a fit, evaluate, predict or training loop was running.
        frames: Frames of the main thread, innermost first, or of the user's generator if it ran; empty when not known.
        others: Frames of each other thread.
        forks: Forked children.
        lines: Stacks of all threads.
    """

    seconds: float
    noticed: float
    wait: str
    in_fit: bool
    frames: tuple[Frame, ...]
    others: tuple[tuple[Frame, ...], ...]
    forks: tuple[ForkedChild, ...]
    lines: tuple[str, ...]

    @property
    def forked_too_late(self) -> ForkedChild | None:
        """A child that was forked after TensorFlow's import and then waited for a lock that is never released."""
        return next((f for f in self.forks if f.is_late and f.is_stuck), None)

    @property
    def may_be_idle_pool(self) -> bool:
        """True if the stuck children may wait for work: in an idle pool one worker reads the queue, the others wait for it."""
        late = [f for f in self.forks if f.is_late]
        return sum(f.wait == "other" for f in late) == 1 and any(f.is_stuck for f in late)

    @property
    def waits_for_workers(self) -> bool:
        """True if the main thread may wait for an answer of a worker process."""
        return self.in_fit or any(part in f.file for f in self.frames for part in _WORKERS)

    @property
    def waits_for(self) -> str | None:
        """``a connection``: what outside the process the main thread waited for; None for a lock and the like."""
        if self.wait == "disk":
            return _DISK
        return (_outside(self.frames) or _UNKNOWN_OUTSIDE) if self.wait == "other" else None

    @property
    def another_waits_for(self) -> str | None:
        """What outside the process another thread of the user waited for, which may hold the lock; else None."""
        found = (_outside(frames) for frames in self.others if not _is_service(frames))
        return next((what for what in found if what), None)

    @property
    def computes(self) -> bool:
        """True for a fit that made no step although the kernel computed."""
        return self.wait == RUNNING

    @property
    def cannot_end(self) -> bool:
        """True if nothing outside the process could have ended the wait: no server, file, child or forked worker."""
        if self.wait == "stopped":
            return True
        ours = bool(self.frames) and not self.forks and self.another_waits_for is None
        return ours and self.wait in _LOCKED

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Duration, kind of wait, Python line and forked children of the hang."""
        work = "a training step, " if self.in_fit else ""
        seen = f"a cell ran without {work}CPU time, input, output or GPU work"
        if self.computes:
            seen = "the fit made no step, although the kernel used CPU time"
        seen = f"For {human_seconds(self.seconds)}, {seen}"
        facts = [Fact(Source.SERVER, seen)]
        wait = f"waiting for {self.waits_for}" if self.waits_for else wait_text(self.wait)
        if wait is not None:
            facts.append(Fact(Source.SERVER, f"Its main thread was {wait}"))
        if self.frames:
            facts.append(Fact(Source.KERNEL, f"Python was at {_python_line(self.frames)}"))
        if (what := self.another_waits_for) is not None:
            facts.append(Fact(Source.KERNEL, f"Another thread was waiting for {what}"))
        for fork in [fork for fork in self.forks if fork.is_stuck][:3]:
            when = ""
            if fork.after_import_seconds is not None:
                order = "after" if fork.after_import_seconds > 0 else "before"
                span = human_seconds(abs(fork.after_import_seconds))
                when = f", forked {span} {order} TensorFlow was imported,"
            text = f"Its child process {fork.pid}{when} waited for a lock"
            facts.append(Fact(Source.SERVER, text))
        return tuple(facts)


def wait_text(wait: str) -> str | None:
    """``waiting for a lock``: readable text for a name of :class:`~..collectors.process_activity.Wait`; None for other names."""
    return _WAITS.get(wait)


# Every message to a page asks again, and the stacks may have 256 KiB.
@functools.lru_cache(maxsize=8)
def line_of(stacks: tuple[str, ...], main_thread: str | None, wait: str) -> str | None:
    """The Python line of a hanging kernel: ``line 4 of the cell, in load``; None if it is not known."""
    frames = _frames(stacks_of(list(stacks)), main_thread, wait)
    return _python_line(frames) if frames else None


def _frames(
    stacks: dict[str, list[Frame]], main_thread: str | None, wait: str
) -> tuple[Frame, ...]:
    """The stack of the main thread; of the user's generator if it computes, or if TensorFlow or Keras waits for it."""
    main = stacks.get(main_thread or "", [])
    waits = wait == RUNNING or waits_in_library(main)
    return tuple((feeding(stacks) if waits else None) or main)


def hang_of(bundle: dict[str, Any]) -> SeenHang | None:
    """The hang that the server recorded in the bundle; None when there was none."""
    seen = dict_of(dict_of(bundle.get("server")).get("hang"))
    since = number_of(seen.get("since"))
    died = number_of(dict_of(bundle.get("identity")).get("died"))
    if since is None or died is None or died < since:
        return None
    journal = events_of(list_of(dict_of(bundle.get("kernel")).get("events")))
    lines = lines_of(seen.get("stacks"))[:_STACK_LINES_LIMIT]
    stacks = stacks_of(lines)
    main = text_of(seen.get("main_thread")) or ""
    return SeenHang(
        seconds=died - since,
        noticed=number_of(seen.get("noticed")) or died,
        wait=text_of(seen.get("wait")) or "",
        in_fit=bool(seen.get("in_fit")),
        frames=_frames(stacks, main, text_of(seen.get("wait")) or ""),
        others=tuple(tuple(frames) for name, frames in stacks.items() if name != main),
        forks=_forks(seen.get("forks"), _imported(journal)),
        lines=tuple(lines),
    )


def _outside(frames: tuple[Frame, ...]) -> str | None:
    files = ["/" + frame.file.replace("\\", "/").lstrip("/") for frame in frames[:_INNERMOST]]
    return next((what for part, what in _OUTSIDE if any(f"/{part}" in f for f in files)), None)


def _is_service(frames: tuple[Frame, ...]) -> bool:
    own = [frame.file for frame in frames if frame.name != _NO_SERVICE]
    return any(part in file for file in own for part in _SERVICES)


def _forks(found: object, imported: float | None) -> tuple[ForkedChild, ...]:
    forks = []
    for fork in map(dict_of, list_of(found)):
        pid, started = number_of(fork.get("pid")), number_of(fork.get("started"))
        if pid is not None:
            known = imported is not None and started is not None
            after = (started or 0) - (imported or 0) if known else None
            forks.append(ForkedChild(int(pid), text_of(fork.get("wait")) or "", after))
    return tuple(forks)


def _imported(events: list[Event]) -> float | None:
    times = (
        event.time for event in events if isinstance(event, Import) and event.module == "tensorflow"
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
