"""A death as the watcher hands it on, and what of it is worked out from two readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..record.facts import Counters, ExitFacts, ServerFacts, SystemLog
from ..record.identity import ProcessIdentity
from .child_kill import ChildKill
from .process_handle import is_running


@dataclass(frozen=True)
class Death:
    """One death of a kernel, or of a child of a living one (``facts.kernel_alive``).

    Attributes:
        identity: The process that ended.
        kernel_id, kernel_name, notebook_path: As the host knows them; None = unknown.
        recording: Folder of the recording of `identity`, whether it exists or not.
        facts: What the watcher saw.
        system_log: Lines of the system's log from before the death on.
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
    """What is known of the death of a kernel.

    Args:
        seen: As :meth:`~.monitored.MonitoredKernel.seen` gives it.
        pid: The kernel's process.
        children: Its descendants, as last seen.
        ended: How it ended; None when the status could not be read.
        after: Counters read after the death.
        asked: The end was asked for.
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
    """What is known of a child that was killed while the kernel goes on.

    Args:
        seen: As :meth:`~.monitored.MonitoredKernel.seen` gives it.
        kill: As it was noticed.
        ended: Those of its children that were killed.
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
    """Processes of the group that are gone, but for the known ones; None where the group's could not be read."""
    if before.group_pids is None or after.group_pids is None:
        return None
    return tuple(sorted({*before.group_pids} - {*after.group_pids} - known))
