"""Observations of one running kernel from outside, kept in memory where a notebook cannot forge them.

Not here: the facts derived from them after a crash (:mod:`.death`).
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..collectors.cgroup import Placement
from ..collectors.process import ProcessCollector
from ..collectors.ulimits import UlimitCollector
from ..errors import SourceUnavailable
from ..memory.limits import Limit, binding_limit, memory_in_use
from ..metrics import Sample
from ..places import disabled_by_environment
from ..procfs import read_environ
from ..record.facts import Counters, Cull, Hang, ServerFacts
from .crash.child_kill import ChildKillDetector, ReportedKill
from .crash.held_stderr import HeldStderr
from .crash.process_handle import ProcessHandle
from .history import COLUMNS, OWN_COLUMNS, ULIMIT_COLUMNS, History
from .live.forecast import Forecast, Forecaster
from .live.live import Live
from .live.shared_group import SharedGroups

_ENDING_KEPT_SECONDS = 10.0
_UNKNOWN = math.nan


@dataclass
class Kernel:
    """What the host (a Jupyter server) knows about a kernel, and keeps up to date.

    Attributes:
        kernel_id, kernel_name, notebook_path: None = unknown.
        is_busy: Called many times a second; True while a cell runs, or if that is unknown.
        runs_cell: True only if a cell is known to run.
        is_ending: True once the end was requested (restart, shutdown, cull).
        heard_count: Number of messages received from the kernel; None = unknown.
    """

    kernel_id: str
    kernel_name: str | None = None
    notebook_path: str | None = None
    is_busy: Callable[[], bool] = lambda: True
    runs_cell: Callable[[], bool] = lambda: False
    is_ending: Callable[[], bool] = lambda: False
    heard_count: Callable[[], int | None] = lambda: None


class MonitoredKernel:
    """Samples of one kernel process, and its counters from before a crash.

    Some attributes are updated by other classes: `live` by :class:`~.live_feed.LiveFeed`, `hang` by
    :class:`~.hangs.Hangs`, `is_busy` by :class:`~.polling.Sampler`.

    Args:
        pid: The process.
        kernel: What the host knows about it.
        groups: Shared by all monitored kernels of a watcher.

    Attributes:
        handle, identity: Handle and identity of the process.
        kernel: As above.
        since: Monotonic seconds when tracking began.
        history: Its last samples.
        live: What the kernel reports about itself.
        peak_bytes: Peak of its resident memory; None = unknown.
        children: Process ids of its descendants, as last seen.
        is_busy: A cell ran recently, or that is unknown.
        is_switched_off: True if the guard was switched off in the environment at its start; None = unknown.
        hang: The current hang; None if it does not hang.
        cull: The check of the server's culler that is shutting it down; None in any other case.
        before: Counters while the process was running; None before the second poll.
        group: Its memory group; shared.
        stderr: The pipe and destination of its native stderr.
        reported_kill: The newest killed child that has a report; None if there is none. The host sets it.
        child_kills: Detects children killed by the OOM killer.
        unavailable: What could not be read, and why.

    Raises:
        SourceUnavailable: There is no such process.
    """

    def __init__(self, pid: int, kernel: Kernel, groups: SharedGroups) -> None:
        self.handle = ProcessHandle(pid)
        self.identity = self.handle.identity
        self.kernel = kernel
        self.since = time.monotonic()
        self.history = History()
        self.live = Live()
        self.peak_bytes: int | None = None
        self.children: tuple[int, ...] = ()
        self.is_busy = True
        self.is_switched_off: bool | None = None
        self.hang: Hang | None = None
        self.cull: Cull | None = None
        self._forecaster = Forecaster(self.since)
        self._read_switch()
        self._last: tuple[int, float, float, int] | None = None
        self._shared: dict[str, float] = {}
        self._own_row = (_UNKNOWN, _UNKNOWN)
        self.unavailable: dict[str, str] = {}
        self.stderr = HeldStderr()
        self.reported_kill: ReportedKill | None = None
        self.child_kills = ChildKillDetector()
        self.before: Counters | None = None
        self._fresh: Counters | None = None
        self._earlier: Counters | None = None
        self._recent_children: tuple[int, ...] = ()
        self._slow: dict[str, float] = {}
        self._ulimits = UlimitCollector(pid)
        self._ulimit: dict[str, float] = {}
        self._had_ulimit = False
        self._sequence = 0
        self._ending_seen: float | None = None
        self._process: ProcessCollector | None = None
        self._groups = groups
        self._placement = Placement(pid)
        self._heard_before = kernel.heard_count() or 0
        self.group = groups.none
        self._lock = (
            threading.Lock()
        )  # for the sampler, the slow poll and the thread that handles crashes
        try:
            self._process = ProcessCollector(pid, self.identity.start_time)
        except SourceUnavailable as bad:  # the process just ended
            self.unavailable["process"] = str(bad)
        self._update_group()

    @property
    def latest(self) -> Sample | None:
        """Newest sample; None before the first. Built on access, because most samples are never used."""
        last, shared, slow, ulimit = self._last, self._shared, self._slow, self._ulimit
        if last is None:
            return None
        sequence, moment, wall, rss = last
        return Sample(
            sequence, moment, wall, {**shared, **slow, **ulimit, "process.rss_bytes": rss}
        )

    @property
    def sampled_at(self) -> float | None:
        """Unix seconds of the newest sample; None before the first."""
        latest = self.latest
        return None if latest is None else latest.time

    def sample(self, tick: int, host: Mapping[str, float]) -> bool:
        """Take a sample. Cheap: reads one file; the numbers of the group and of the slow poll are already known.

        Args:
            tick: Number of the sampler's round; kernels of one group share the group's values in a round.
            host: Metrics of the machine.

        Returns:
            False if the process has no memory numbers: it is ending, or has ended.
        """
        if self.kernel.is_ending():
            self._ending_seen = time.monotonic()
        shared, shared_row = self.group.values(tick, host)
        with self._lock:
            process = self._process
            if process is None:
                return False
            # Take the counters before checking that the process runs, and trust them only after the next check: an OOM
            # kill is counted a moment before its victim is gone.
            counters = self.group.counters
            if counters is self._earlier:
                counters = None
            try:
                rss = process.resident_bytes()
                if rss > (
                    self.peak_bytes or 0
                ):  # memory grew: read the peak between the samples too
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
            if self.is_busy:
                self._watch_rise(moment, rss)
            ulimit_row = (self._ulimit.get(name, _UNKNOWN) for name in ULIMIT_COLUMNS)
            if self.history.add(moment, (rss, *self._own_row, *shared_row, *ulimit_row)):
                limit = self.binding_limit()
                values = {**shared, **self._ulimit, "process.rss_bytes": rss}
                self.history.add_to_chart(moment, memory_in_use(limit, values))
            return True

    def _take_status(self, values: dict[str, float]) -> None:
        peak = values.get("process.peak_bytes")
        if peak is not None:
            self.peak_bytes = max(int(peak), self.peak_bytes or 0)
        self._slow = slow = {**self._slow, **values}
        children, swap = (slow.get(name, _UNKNOWN) for name in OWN_COLUMNS[1:])
        self._own_row = (children, swap)

    def poll(self) -> None:
        """Read what changes slowly: peak, swap, threads, children, limits of the process, its memory group."""
        process = self._process
        if process is None:
            return
        if self.is_switched_off is None:
            self._read_switch()
        try:
            values = process.status() | process.children_values()
            ulimit = self._read_ulimit()
            with self._lock:
                if self._process is not process:
                    return
                process.resident_bytes()  # fails if the values may belong to a later process
                self._take_status(values)
                self._take_children(process.children)
                self._ulimit = ulimit
                self._had_ulimit |= bool(ulimit)
        except SourceUnavailable:
            return
        self._update_group()

    def _read_switch(self) -> None:
        """Read whether the guard is switched off; unknown during exec, when the environment reads as empty."""
        with contextlib.suppress(SourceUnavailable):
            environ = read_environ(f"/proc/{self.identity.pid}/environ")
            if environ:
                self.is_switched_off = disabled_by_environment(environ)

    def _read_ulimit(self) -> dict[str, float]:
        try:
            return self._ulimits.collect()
        except SourceUnavailable:
            return {}

    def _take_children(self, found: tuple[int, ...] | None) -> None:
        if found is not None:
            # A killed child is in the list of the previous poll.
            self._recent_children = tuple({*self.children, *found})
            self.children = found

    def read_kills(self) -> None:
        """Compare the group's counters with those of the previous poll."""
        counters = self.group.counters
        if counters is not None:
            self.child_kills.poll(counters, self._recent_children)

    def _update_group(self) -> None:
        try:
            place = self._placement.poll()
            if place is not None:
                self.group = self._groups.at(place)
                # Read before the kernel was in this group: a later rise may be the kill of an earlier process.
                self._earlier = self.group.counters
                self.unavailable.pop("cgroup", None)
        except SourceUnavailable as bad:
            if self.group.path is None:
                self.unavailable["cgroup"] = str(bad)

    def _watch_rise(self, moment: float, rss: float) -> None:
        own = {"process.rss_bytes": rss, "process.children_rss_bytes": self._own_row[0]}
        values = {**self._shared, **self._ulimit, **own}
        self._forecaster.take(moment, values, self.binding_limit())

    def binding_limit(self) -> Limit | None:
        """The binding limit; None before the first sample."""
        if self._last is None:
            return None
        return binding_limit({**self._shared, **self._ulimit})

    def forecast(self) -> Forecast | None:
        """When the memory of a busy kernel reaches the limit; None without a reliable forecast. Computed on demand."""
        return self._forecaster.now() if self.is_busy else None

    def limit(self) -> tuple[int | None, str | None]:
        """Bytes and kind of the binding limit; both None before the first sample."""
        found = self.binding_limit()
        return (None, None) if found is None else (found.size_bytes, found.wire_kind)

    def was_asked_to_end(self) -> bool:
        """True if the end was requested in the last seconds."""
        if self.kernel.is_ending():
            return True
        seen = self._ending_seen
        return seen is not None and time.monotonic() - seen < _ENDING_KEPT_SECONDS

    def seen(self, died: float) -> ServerFacts:
        """All observations so far, for an end detected at this Unix second; without the exit status."""
        with self._lock:
            heard = self.kernel.heard_count()
            # Leave out the columns of limits that the process never had.
            count = 1 + len(COLUMNS) - (0 if self._had_ulimit else len(ULIMIT_COLUMNS))
            return ServerFacts(
                exit=None,
                died=died,
                peak_bytes=self.peak_bytes,
                columns=("time", *COLUMNS)[:count],
                rows=tuple(row[:count] for row in self.history.rows.read()),
                before=self.before or self._fresh,
                hang=self.hang,
                cull=self.cull,
                answered=None if heard is None else heard > self._heard_before,
                unavailable=dict(self.unavailable),
            )

    def close(self) -> None:
        """Close all descriptors; the observations are kept. Idempotent."""
        self.stderr.close()
        with self._lock:
            self.handle.close()
            if self._process is not None:
                self._process.close()
            self._process = None
