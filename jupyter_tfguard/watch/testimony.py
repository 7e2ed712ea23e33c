"""What a witness can say once its kernel, or a child of it, has died."""

from __future__ import annotations

from dataclasses import dataclass

from ..collectors.procfs import colon_lines, read_small
from ..record.facts import Counters, Hang, ServerFacts
from ..units import parse_kib
from .child_kill import ChildKill
from .exit_status import Ended
from .process_handle import is_running

# The operating system counts resident pages per processor, and adds them up now and then.
_PEAK_SLACK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Testimony:
    """What was seen of a kernel until now, all of it at one moment.

    Attributes:
        pids: The process.
        peak_bytes: The most that it was seen holding resident; None = unknown.
        starter_peak_bytes: The same of this process when the watching began; None = unknown.
        columns, rows: Its last samples, as in :class:`~..record.facts.ServerFacts`.
        before: Counters while it was well; None when there are none.
        children: Process ids of its descendants, as last seen.
        hang: How it stood still; None when it did not.
        answered: Whether it was heard since the watching began; None = not known.
        unavailable: What could not be read, and why.
    """

    pids: frozenset[int]
    peak_bytes: int | None
    starter_peak_bytes: int | None
    columns: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]
    before: Counters | None
    children: tuple[int, ...]
    hang: Hang | None
    answered: bool | None
    unavailable: dict[str, str]

    def of_death(
        self, ended: Ended | None, after: Counters, died: float, *, asked: bool = False
    ) -> ServerFacts:
        """Everything seen of the death of the kernel.

        Args:
            ended: How the process ended; None when the status could not be read.
            after: Counters read after the death.
            died: Unix seconds when the death was noticed.
            asked: The end was asked for.
        """
        peak, source = self._peak(ended)
        unavailable = self.unavailable
        if ended is None:
            unavailable = unavailable | {"exit": "nobody here could read it"}
        return ServerFacts(
            exit=ended.exit if ended else None,
            died=died,
            shutting_down=asked,
            starter_peak_bytes=self.starter_peak_bytes,
            peak_bytes=peak,
            peak_source=source,
            columns=self.columns,
            rows=self.rows,
            before=self.before,
            after=after,
            ended_children=tuple(c for c in self.children if not is_running(c)),
            ended_neighbours=_vanished(self.before or after, after, self.pids),
            hang=self.hang,
            answered=self.answered,
            unavailable=unavailable,
        )

    def of_child(self, kill: ChildKill, ended: tuple[int, ...]) -> ServerFacts:
        """What was seen of a child that was killed while the kernel goes on.

        Args:
            kill: As it was noticed.
            ended: Those of its children that were killed.
        """
        return ServerFacts(
            exit=None,
            died=kill.time,
            kernel_alive=True,
            peak_bytes=self.peak_bytes,
            peak_source="VmHWM" if self.peak_bytes else None,
            columns=self.columns,
            rows=self.rows,
            before=kill.before,
            after=kill.after,
            ended_children=ended,
            ended_neighbours=_vanished(kill.before, kill.after, frozenset(ended)),
            unavailable=self.unavailable,
        )

    def _peak(self, ended: Ended | None) -> tuple[int | None, str | None]:
        by_rusage = ended.peak_bytes if ended else None
        inherited = self.starter_peak_bytes
        if by_rusage is not None and inherited is not None and by_rusage > inherited + _PEAK_SLACK:
            return max(by_rusage, self.peak_bytes or 0), "rusage"
        return self.peak_bytes, "VmHWM" if self.peak_bytes else None


def _vanished(before: Counters, after: Counters, known: frozenset[int]) -> tuple[int, ...] | None:
    """Processes of the group that are gone, but for the known ones; None where the group's could not be read."""
    if before.group_pids is None or after.group_pids is None:
        return None
    return tuple(sorted(set(before.group_pids) - set(after.group_pids) - known))


def own_peak_bytes() -> int | None:
    """The most that this process held resident; None = unknown.

    A peak from rusage survives fork and exec: the kernel's is at least what its starter had.
    """
    try:
        status = read_small("/proc/self/status").decode("utf-8", "replace")
        return parse_kib(colon_lines(status)["VmHWM"])
    except (OSError, KeyError, ValueError):
        return None
