"""What is seen of one kernel from outside while it lives, kept in memory where a notebook cannot forge it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..collectors.cgroup import Placement
from ..collectors.process import ProcessCollector
from ..collectors.procfs import colon_lines, read_small
from ..errors import SourceUnavailable
from ..limits import CONTAINER_LIMIT, binding_limit
from ..metrics import Sample
from ..record.facts import Counters, Hang, ServerFacts
from ..record.identity import ProcessIdentity
from ..units import parse_kib
from .child_kill import ChildKillDetector
from .exit_status import Ended
from .history import COLUMNS, OWN_COLUMNS, History
from .live import Live
from .process_handle import ProcessHandle, is_running
from .shared_group import SharedGroups

GOLDEN = (
    math.sqrt(5) - 1
) / 2  # multiples of it, without the whole part, spread evenly between 0 and 1
_ENDING_KEPT_SECONDS = 10.0
_UNKNOWN = math.nan


@dataclass
class Kernel:
    """What the host (a Jupyter server) knows of a kernel, and keeps up to date.

    Attributes:
        kernel_id, kernel_name, notebook_path: None = unknown.
        is_busy: Asked many times a second; True while a cell runs, or while that is not known.
        runs_cell: True only when it is known that a cell runs.
        is_ending: True once the end was asked for (restart, shutdown, cull).
        activity: Anything that is another value after the kernel did something; None = not known.
    """

    kernel_id: str
    kernel_name: str | None = None
    notebook_path: str | None = None
    is_busy: Callable[[], bool] = lambda: True
    runs_cell: Callable[[], bool] = lambda: False
    is_ending: Callable[[], bool] = lambda: False
    activity: Callable[[], object] = lambda: None


class Witness:
    """Samples of one kernel process, and its counters before the death.

    Args:
        pid: The process.
        kernel: What the host knows of it.
        groups: Shared by all witnesses of a watcher.

    Attributes:
        identity: The process.
        before: Counters while the process was well; None before the second look.
        live: What the kernel says of itself, kept up to date by :class:`~.live_feed.LiveFeed`.
        since: Monotonic seconds when the watching began.
        group: Its memory group; shared.
        is_busy, due: As the sampler knows it: a cell ran lately; monotonic seconds by which the next sample is to be taken.
        look_due: Monotonic seconds of the next look, kept by :class:`~.looks.Looks`.
        hang: How it stands still now, kept by :class:`~.hangs.Hangs`; None while it does not.
        unavailable: What could not be read, and why.

    Raises:
        SourceUnavailable: There is no such process.
    """

    def __init__(self, pid: int, kernel: Kernel, groups: SharedGroups) -> None:
        self.handle = ProcessHandle(pid)
        self.identity: ProcessIdentity = self.handle.identity
        self.kernel = kernel
        self.history = History()
        self._last: tuple[int, float, float, int] | None = None
        self._shared: dict[str, float] = {}
        self._own_row = (_UNKNOWN, _UNKNOWN)
        self.peak_bytes: int | None = None
        self.unavailable: dict[str, str] = {}
        self.child_kills = ChildKillDetector()
        self.live = Live()
        self.hang: Hang | None = None
        self.since = time.monotonic()
        self.is_busy = True
        self.due = self.look_due = 0.0
        self.before: Counters | None = None
        self._starter_peak_bytes = _own_peak_bytes()
        self._fresh: Counters | None = None
        self._earlier: Counters | None = None
        self._children: tuple[int, ...] = ()
        self._recent_children: tuple[int, ...] = ()
        self._slow: dict[str, float] = {}
        self._sequence = 0
        self._ending_seen: float | None = None
        self._process: ProcessCollector | None = None
        self._groups = groups
        self._placement = Placement(pid)
        self._first_activity = kernel.activity()
        self.group = groups.none()
        self._lock = threading.Lock()  # sampler, looks, and the gathering of the death
        try:
            self._process = ProcessCollector(pid, self.identity.start_time)
        except SourceUnavailable as bad:  # it ended just now
            self.unavailable["process"] = str(bad)
        self._find_group()

    @property
    def own_group(self) -> str | None:
        """Path of the kernel's own memory group; None when it is not visible."""
        return self.group.path

    @property
    def latest(self) -> Sample | None:
        """Newest sample; None before the first. Put together when somebody asks: most samples nobody does."""
        last, shared, slow = self._last, self._shared, self._slow
        if last is None:
            return None
        sequence, moment, wall, rss = last
        return Sample(sequence, moment, wall, {**shared, **slow, "process.rss_bytes": rss})

    @property
    def children(self) -> tuple[int, ...]:
        """Process ids of the descendants that the last look saw."""
        return self._children

    # --- while it lives --------------------------------------------------------------------------------------------

    def sample(self, tick: int, host: Mapping[str, float]) -> bool:
        """Take a sample. Cheap: one file is read, the numbers of the group and of the last look are known.

        Args:
            tick: Number of the sampler's round; kernels of one group share its values in a round.
            host: Metrics of the machine.

        Returns:
            False when the process gives no numbers: it is being taken down, or has ended.
        """
        if self.kernel.is_ending():
            self._ending_seen = time.monotonic()
        shared, shared_row = self.group.values(tick, host)
        with self._lock:
            process = self._process
            if process is None:
                return False
            # Taken before the process is seen in good health, so that they can be believed after the next time: an OOM
            # kill counts a moment before its victim is gone.
            counters = self.group.counters
            if counters is self._earlier:
                counters = None
            try:
                rss = process.resident_bytes()
                if rss > (self.peak_bytes or 0):  # it grows: how high was it between the samples?
                    self._take_status(process.status())
                    self.peak_bytes = max(rss, self.peak_bytes or 0)
            except SourceUnavailable:
                return False
            if counters is not self._fresh:
                self.before, self._fresh = self._fresh or self.before, counters
            elif counters is not None:
                self.before = counters
            self._sequence += 1
            moment = time.monotonic()
            self._last, self._shared = (self._sequence, moment, time.time(), rss), shared
            if self.history.add(moment, (rss, *self._own_row, *shared_row)):
                self.history.add_to_chart(moment, rss, self.limit()[0])
            return True

    def _take_status(self, values: dict[str, float]) -> None:
        peak = values.get("process.peak_bytes")
        if peak is not None:
            self.peak_bytes = max(int(peak), self.peak_bytes or 0)
        self._slow = slow = {**self._slow, **values}
        children, swap = (slow.get(name, _UNKNOWN) for name in OWN_COLUMNS[1:])
        self._own_row = (children, swap)

    def look(self, children_cost_fraction: float) -> None:
        """Read what is read rarely: peak, swap, threads, children, the group it is in."""
        process = self._process
        if process is None:
            return
        process.children_cost_fraction = children_cost_fraction
        try:
            values = process.status() | process.children_values()
            with self._lock:
                if self._process is None:
                    return
                process.keep()
                process.resident_bytes()  # what was read was this process's, if it still answers
                self._take_status(values)
                self._take_children(process.children)
        except SourceUnavailable:
            return
        self._find_group()

    def _take_children(self, found: tuple[int, ...] | None) -> None:
        if found is not None:
            # A killed child is one of those of the look before.
            self._recent_children = tuple({*self._children, *found})
            self._children = found

    def look_for_kills(self) -> None:
        """Compare the group's counters with those of the look before."""
        counters = self.group.counters
        if counters is not None:
            self.child_kills.look(counters, self._recent_children)

    def _find_group(self) -> None:
        try:
            place = self._placement.look()
            if place is not None:
                self.group = self._groups.at(place)
                # Read before it was in here: what was counted since may be the kill of the one before it.
                self._earlier = self.group.counters
                self._placement.arrived()
                self.unavailable.pop("cgroup", None)
        except SourceUnavailable as bad:
            if self.group.path is None:
                self.unavailable["cgroup"] = str(bad)

    def limit(self) -> tuple[int | None, str | None]:
        """Bytes of the limit that binds, ``cgroup`` or ``host``; both None before the first sample."""
        if self._last is None:
            return None, None
        shared = self._shared
        found = binding_limit(shared.get("cgroup.limit_bytes"), shared.get("host.total_bytes"))
        if found is None:
            return None, None
        return found[0], "cgroup" if found[1] == CONTAINER_LIMIT else "host"

    def was_asked_to_end(self) -> bool:
        """True when the end was asked for, now or in the seconds before."""
        if self.kernel.is_ending():
            return True
        seen = self._ending_seen
        return seen is not None and time.monotonic() - seen < _ENDING_KEPT_SECONDS

    # --- when it is dead -------------------------------------------------------------------------------------------

    def facts(
        self, ended: Ended | None, died: float, noticed: float, *, asked: bool = False
    ) -> ServerFacts:
        """Everything seen of the death.

        Args:
            ended: How the process ended; None when the status could not be read.
            died: Unix seconds when the death was noticed. noticed: the same in monotonic seconds; counters are read
                later than that, for all deaths of one moment together.
            asked: The end was asked for.
        """
        after = self.group.counters_after(noticed)
        with self._lock:
            peak, source = self._peak(ended)
            unavailable = dict(self.unavailable)
            if ended is None:
                unavailable["exit"] = "nobody here could read the exit status"
            return ServerFacts(
                exit=ended.exit if ended else None,
                died=died,
                shutting_down=asked,
                starter_peak_bytes=self._starter_peak_bytes,
                peak_bytes=peak,
                peak_source=source,
                columns=("time", *COLUMNS),
                rows=tuple(self.history.rows.read()),
                before=self.before or self._fresh,
                after=after,
                ended_children=tuple(c for c in self._children if not is_running(c)),
                ended_neighbours=self._ended_neighbours(after),
                hang=self.hang,
                answered=self._has_answered(),
                unavailable=unavailable,
            )

    def _has_answered(self) -> bool | None:
        now = self.kernel.activity()
        return None if now is None else now != self._first_activity

    def child_facts(
        self, before: Counters, after: Counters, ended: tuple[int, ...], died: float
    ) -> ServerFacts:
        """What was seen of a child that was killed while the kernel goes on."""
        with self._lock:
            gone = set(before.group_pids or ()) - set(after.group_pids or ()) - set(ended)
            return ServerFacts(
                exit=None,
                died=died,
                kernel_alive=True,
                peak_bytes=self.peak_bytes,
                peak_source="VmHWM" if self.peak_bytes else None,
                columns=("time", *COLUMNS),
                rows=tuple(self.history.rows.read()),
                before=before,
                after=after,
                ended_children=ended,
                ended_neighbours=tuple(sorted(gone)) if before.group_pids is not None else None,
                unavailable=dict(self.unavailable),
            )

    def _peak(self, ended: Ended | None) -> tuple[int | None, str | None]:
        by_rusage = ended.peak_bytes if ended else None
        inherited = self._starter_peak_bytes
        if by_rusage is not None and inherited is not None and by_rusage > inherited:
            return max(by_rusage, self.peak_bytes or 0), "rusage"
        return self.peak_bytes, "VmHWM" if self.peak_bytes else None

    def _ended_neighbours(self, after: Counters) -> tuple[int, ...] | None:
        before = (self.before or self._fresh or after).group_pids
        if before is None or after.group_pids is None:
            return None
        return tuple(sorted(set(before) - set(after.group_pids) - {self.identity.pid}))

    def close(self) -> None:
        """Give all descriptors back; what was seen is kept. Doing it twice is harmless."""
        with self._lock:
            self.handle.close()
            if self._process is not None:
                self._process.close()
            self._process = None


def _own_peak_bytes() -> int | None:
    # A peak from rusage survives fork and exec: the kernel's is at least what its starter had.
    try:
        status = read_small("/proc/self/status").decode("utf-8", "replace")
        return parse_kib(colon_lines(status)["VmHWM"])
    except (OSError, KeyError, ValueError):
        return None
