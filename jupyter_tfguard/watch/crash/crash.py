"""A crash as the watcher reports it, and the facts derived from two readings of counters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ...record.facts import Counters, ExitFacts, ServerFacts, SystemLog
from ...record.identity import ProcessIdentity
from .child_kill import ChildKill
from .process_handle import is_running


@dataclass(frozen=True)
class Crash:
    """The end of a kernel, or of a child of a running kernel (``facts.kernel_alive``).

    Attributes:
        identity: The process that ended.
        kernel_id, kernel_name, notebook_path: From the host; None = unknown.
        recording: Folder of the recording of `identity`; may not exist.
        facts: What the watcher observed.
        system_log: Lines of the system log, starting shortly before the end.
    """

    identity: ProcessIdentity
    kernel_id: str
    kernel_name: str | None
    notebook_path: str | None
    recording: Path
    facts: ServerFacts
    system_log: SystemLog


def of_kernel(
    seen: ServerFacts,
    pid: int,
    children: tuple[int, ...],
    ended: ExitFacts | None,
    after: Counters,
    *,
    asked: bool = False,
) -> ServerFacts:
    """The facts about the end of a kernel.

    Args:
        seen: From :meth:`~.monitored.MonitoredKernel.seen`.
        pid: The kernel's process.
        children: Its descendants, as last seen.
        ended: The exit status; None if it could not be read.
        after: Counters read after the end.
        asked: The end was requested.
    """
    unavailable = seen.unavailable
    if ended is None:
        unavailable = unavailable | {"exit": "this process could not read it"}
    return replace(
        seen,
        exit=ended,
        shutting_down=asked,
        after=after,
        ended_children=tuple(c for c in children if not is_running(c)),
        ended_neighbours=_vanished(seen.before or after, after, {pid}),
        unavailable=unavailable,
    )


def of_child(seen: ServerFacts, kill: ChildKill, ended: tuple[int, ...]) -> ServerFacts:
    """The facts about a child that was killed while the kernel is still running.

    Args:
        seen: From :meth:`~.monitored.MonitoredKernel.seen`.
        kill: The detected kill.
        ended: The children that were killed.
    """
    return replace(
        seen,
        kernel_alive=True,
        before=kill.before,
        after=kill.after,
        ended_children=ended,
        ended_neighbours=_vanished(kill.before, kill.after, {*ended}),
        hang=None,
        answered=None,
    )


def _vanished(before: Counters, after: Counters, known: set[int]) -> tuple[int, ...] | None:
    """Processes of the group that are gone, without the known ones; None if the group's processes could not be read."""
    if before.group_pids is None or after.group_pids is None:
        return None
    return tuple(sorted({*before.group_pids} - {*after.group_pids} - known))
