"""What is seen of one kernel from outside while it lives, kept in memory where a notebook cannot forge it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..collectors.cgroup import CgroupCollector
from ..collectors.host import HostCollector
from ..collectors.process import ProcessCollector
from ..collectors.procfs import colon_lines, read_text
from ..errors import SourceUnavailable
from ..limits import CONTAINER_LIMIT, binding_limit
from ..metrics import Sample
from ..record.facts import Counters, GroupCounters, ServerFacts
from ..record.identity import ProcessIdentity
from ..units import parse_kib
from .child_kill import ChildKillDetector
from .counters import GroupReader, counters
from .exit_status import Ended
from .history import COLUMNS, History
from .live import Live
from .process_handle import ProcessHandle, is_running

_LOOK_SECONDS = 1.0
_ENDING_KEPT_SECONDS = 10.0


@dataclass
class Kernel:
    """What the host (a Jupyter server) knows of a kernel, and keeps up to date.

    Attributes:
        kernel_id, kernel_name, notebook_path: None = unknown.
        is_busy: Asked many times a second; True while a cell runs.
        is_ending: True once the end was asked for (restart, shutdown, cull).
    """

    kernel_id: str
    kernel_name: str | None = None
    notebook_path: str | None = None
    is_busy: Callable[[], bool] = lambda: True
    is_ending: Callable[[], bool] = lambda: False


class Witness:
    """Samples of one kernel process, and its counters before the death.

    Attributes:
        identity: The process.
        latest: Newest sample; None before the first.
        before: Counters while the process was well; None before the second look.
        live: What the kernel says of itself, kept up to date by :class:`~.live_feed.LiveFeed`.
        since: Monotonic seconds when the watching began.
        due: Monotonic seconds of the next sample, kept by the watcher.
        unavailable: What could not be read, and why.

    Raises:
        SourceUnavailable: There is no such process.
    """

    def __init__(self, pid: int, kernel: Kernel) -> None:
        self.handle = ProcessHandle(pid)
        self.identity: ProcessIdentity = self.handle.identity
        self.kernel = kernel
        self.history = History()
        self.latest: Sample | None = None
        self.peak_bytes: int | None = None
        self.unavailable: dict[str, str] = {}
        self.child_kills = ChildKillDetector()
        self.live = Live()
        self.since = time.monotonic()
        self.due = 0.0
        self.before: Counters | None = None
        self._starter_peak_bytes = _own_peak_bytes()
        self._fresh: Counters | None = None
        self._children: tuple[int, ...] = ()
        self._sequence = 0
        self._look_next = 0.0
        self._ending_seen: float | None = None
        self._process: ProcessCollector | None = None
        self._cgroup: CgroupCollector | None = None
        self._lock = threading.Lock()  # a death may be gathered while the sampler still samples
        try:
            self._process = ProcessCollector(pid)
        except SourceUnavailable as bad:  # a zombie already
            self.unavailable["process"] = str(bad)
        try:
            self._cgroup = CgroupCollector(pid)
        except SourceUnavailable as bad:
            self.unavailable["cgroup"] = str(bad)

    @property
    def own_group(self) -> str | None:
        """Path of the kernel's own memory group; None when it is not visible."""
        return self._cgroup.groups[0].path if self._cgroup else None

    def sample(self, host: dict[str, float], groups: GroupReader) -> bool:
        """Take a sample; once a second look at the counters and children too.

        Returns:
            False when the process gives no numbers: it is being taken down, or has ended.
        """
        if self.kernel.is_ending():
            self._ending_seen = time.monotonic()
        with self._lock:
            if self._process is None:
                return False
            try:
                values = self._process.collect()
            except SourceUnavailable:
                return False
            if self._cgroup is not None:
                with contextlib.suppress(SourceUnavailable):
                    values |= self._cgroup.collect()
            self._remember(values | host)
            # Counters are believed once the process was seen in good health after they were read: an OOM kill counts
            # a moment before its victim is gone.
            if self._fresh is not None:
                self.before, self._fresh = self._fresh, None
            if time.monotonic() >= self._look_next:
                self._look_next = time.monotonic() + _LOOK_SECONDS
                self._look(host, groups)
            return True

    def _remember(self, values: Mapping[str, float]) -> None:
        self._sequence += 1
        self.latest = Sample(self._sequence, time.monotonic(), time.time(), dict(values))
        peak = values.get("process.peak_bytes")
        if peak is not None:
            self.peak_bytes = max(int(peak), self.peak_bytes or 0)
        self.history.add(self.latest.time, values, self.limit()[0])

    def _look(self, host: Mapping[str, float], groups: GroupReader) -> None:
        read: tuple[GroupCounters, ...] = ()
        pids = None
        if self._cgroup is not None:
            read = groups.read(self._cgroup.groups)
            pids = self._cgroup.groups[0].pids()
        self._fresh = counters(read, host, pids)
        children = self._process.children if self._process else None
        self.child_kills.look(self._fresh, tuple({*self._children, *(children or ())}))
        if children is not None:
            self._children = children

    def limit(self) -> tuple[int | None, str | None]:
        """Bytes of the limit that binds, ``cgroup`` or ``host``; both None before the first sample."""
        sample = self.latest
        if sample is None:
            return None, None
        found = binding_limit(sample.get("cgroup.limit_bytes"), sample.get("host.total_bytes"))
        if found is None:
            return None, None
        return found[0], "cgroup" if found[1] == CONTAINER_LIMIT else "host"

    def was_asked_to_end(self) -> bool:
        """True when the end was asked for, now or in the seconds before."""
        if self.kernel.is_ending():
            return True
        seen = self._ending_seen
        return seen is not None and time.monotonic() - seen < _ENDING_KEPT_SECONDS

    def facts(self, ended: Ended | None, died: float) -> ServerFacts:
        """Everything seen of the death; counters are read anew.

        Args:
            ended: How the process ended; None when the status could not be read.
            died: Unix seconds when the death was noticed.
        """
        with self._lock:
            after = self._counters_now()
            peak, source = self._peak(ended)
            unavailable = dict(self.unavailable)
            if ended is None:
                unavailable["exit"] = "nobody here could read the exit status"
            return ServerFacts(
                exit=ended.exit if ended else None,
                died=died,
                starter_peak_bytes=self._starter_peak_bytes,
                peak_bytes=peak,
                peak_source=source,
                columns=("time", *COLUMNS),
                rows=tuple(self.history.rows.read()),
                before=self.before or self._fresh,
                after=after,
                ended_children=tuple(c for c in self._children if not is_running(c)),
                ended_neighbours=self._ended_neighbours(after),
                unavailable=unavailable,
            )

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

    def _counters_now(self) -> Counters:
        host: dict[str, float] = {}
        with contextlib.suppress(SourceUnavailable):
            fresh = HostCollector()  # the shared one repeats its kill counter for a second
            try:
                host = fresh.collect()
            finally:
                fresh.close()
        if self._cgroup is None:
            return counters((), host, None)
        groups = self._cgroup.groups
        return counters(GroupReader().read(groups), host, groups[0].pids())

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
        """Give all descriptors back."""
        with self._lock:
            self.handle.close()
            for collector in (self._process, self._cgroup):
                if collector is not None:
                    collector.close()
            self._process = None


def _own_peak_bytes() -> int | None:
    # A peak from rusage survives fork and exec: the kernel's is at least what its starter had.
    try:
        return parse_kib(colon_lines(read_text("/proc/self/status"))["VmHWM"])
    except (SourceUnavailable, KeyError, ValueError):
        return None
