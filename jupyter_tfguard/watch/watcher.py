"""Watches any number of kernel processes: one thread takes all samples, one gathers and hands on the deaths.

The host says which processes to watch and when one has ended (:meth:`Watcher.ended`); deaths that were asked for are not
handed on. An end that the host did not notice (no pidfd) is noticed by the sampler, which tells the host through `on_gone`.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ..collectors.host import HostCollector
from ..collectors.os_log import SystemLogReader
from ..errors import SourceUnavailable
from ..record.facts import ServerFacts, SystemLog, SystemLogLine
from ..shield import note_problem, shielded
from .child_kill import ChildKill
from .counters import GroupReader
from .death import Death
from .exit_status import Ended, from_returncode
from .gpu_helper import Gpus
from .live_feed import LiveFeed
from .witness import Kernel, Witness

_LOG_WAIT_SECONDS = 0.05
_LOG_MARGIN_SECONDS = 2.0  # the log's clock is not the wall clock
_NEIGHBOUR_SECONDS = 4.0
_NOTICE_BUSY_SECONDS = 0.25
# ... Killed process 4711 (python3) total-vm:...      oom-kill:constraint=...,task=python3,pid=4711,uid=0
_VICTIM = re.compile(r"Killed process (\d{1,10})\b|,pid=(\d{1,10}),uid=\d+$")


@dataclass(frozen=True)
class _Kill:
    """A kernel that SIGKILL ended a moment ago: it may be what a group's counter rose for."""

    group: str | None
    died: float


class Watcher:
    """Watches kernels until :meth:`stop`.

    Args:
        recordings: Folder of the kernels' recordings.
        on_death: Called in a thread of the watcher's, one death at a time.
        on_gone: Called in the sampler's thread when it finds an unannounced end.
        gpus: State of the GPUs, to be kept with a death.
        busy_hertz, idle_hertz: Samples a second.
    """

    def __init__(
        self,
        recordings: Path,
        on_death: Callable[[Death], None],
        on_gone: Callable[[Witness], None],
        *,
        gpus: Callable[[], Gpus] = lambda: Gpus("unavailable", "nobody looked"),
        busy_hertz: float = 10.0,
        idle_hertz: float = 1.0,
    ) -> None:
        self._recordings = recordings
        self._on_death = on_death
        self._on_gone = on_gone
        self._gpus = gpus
        self._busy_seconds = 1 / busy_hertz
        self._idle_seconds = max(1 / idle_hertz, self._busy_seconds)
        self._witnesses: tuple[Witness, ...] = ()
        self._kills: deque[_Kill] = deque(maxlen=20)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._log = SystemLogReader()
        self._log_lock = threading.Lock()
        self._groups = GroupReader()
        self._deaths = ThreadPoolExecutor(1, thread_name_prefix="tfguard-deaths")
        self._sampler: threading.Thread | None = None
        self._live = LiveFeed(recordings, lambda: self._witnesses)

    def watch(self, pid: int, kernel: Kernel) -> Witness:
        """Begin to watch a process.

        Raises:
            SourceUnavailable: There is no such process.
        """
        witness = Witness(pid, kernel)
        with self._lock:
            self._witnesses = (*self._witnesses, witness)
        if self._sampler is None:
            self._sampler = threading.Thread(
                target=self._sample_forever, name="tfguard-sampler", daemon=True
            )
            self._sampler.start()
            self._live.start()
        self._wake.set()
        return witness

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """All that are watched now."""
        return self._witnesses

    def drop(self, witness: Witness) -> None:
        """Stop watching a process; nothing is reported."""
        self._forget(witness)
        witness.close()

    def _forget(self, witness: Witness) -> None:
        with self._lock:
            self._witnesses = tuple(w for w in self._witnesses if w is not witness)

    def ended(
        self, witness: Witness, returncode: Callable[[], int | None] = lambda: None
    ) -> Future[None] | None:
        """Say that a process has ended, by accident. Quick: the exit status is read at once, the rest in a thread.

        Args:
            witness: Of the process.
            returncode: Asks its starter, should nothing better be readable; it may reap.

        Returns:
            Done once the death was handed on; None when the watcher is stopping.
        """
        died = time.time()
        ended = witness.handle.end()
        if ended is None and (told := returncode()) is not None:
            ended = Ended(from_returncode(told))
        self._forget(witness)
        if ended is not None and ended.exit.signal == "SIGKILL":
            self._kills.append(_Kill(witness.own_group, died))
        try:
            return self._deaths.submit(self._gather, witness, ended, died)
        except RuntimeError:  # stopped in the meantime
            witness.close()
            return None

    def _gather(self, witness: Witness, ended: Ended | None, died: float) -> None:
        with shielded("gathering what is known of a death"):
            try:
                facts = self._with_gpus(witness.facts(ended, died))
            finally:
                witness.close()
            before = facts.before.time if facts.before else died
            log = self._system_log(min(before, died), wait=_may_be_oom(facts))
            self._on_death(self._death(witness, facts, log))

    def _with_gpus(self, facts: ServerFacts) -> ServerFacts:
        gpus = self._gpus()
        if gpus.state != "ok":
            facts = replace(
                facts, unavailable=facts.unavailable | {"NVML": gpus.reason or gpus.state}
            )
        return replace(facts, gpus=gpus.devices)

    def _death(self, witness: Witness, facts: ServerFacts, log: SystemLog) -> Death:
        kernel = witness.kernel
        return Death(
            identity=witness.identity,
            kernel_id=kernel.kernel_id,
            kernel_name=kernel.kernel_name,
            notebook_path=kernel.notebook_path,
            recording=self._recordings / witness.identity.folder_name,
            facts=facts,
            system_log=log,
        )

    def _system_log(self, since: float, *, wait: bool) -> SystemLog:
        if wait and self._log.reason is None:
            time.sleep(_LOG_WAIT_SECONDS)  # the OOM killer counts first and writes then
        with self._log_lock:
            lines = self._log.lines(since - _LOG_MARGIN_SECONDS)
            reason = self._log.reason
        return SystemLog(reason is None, reason, tuple(SystemLogLine(*line) for line in lines))

    # --- the sampler's thread ------------------------------------------------------------------------------------

    def _sample_forever(self) -> None:
        try:
            host = HostCollector()
        except SourceUnavailable as bad:
            note_problem("sampling kernels", bad)
            return
        while not self._stopping:
            self._wake.wait(self._pause_seconds())
            self._wake.clear()
            with shielded("sampling kernels"):
                self._sample_due(host)
        host.close()

    def _pause_seconds(self) -> float | None:
        if not self._witnesses:
            return None
        if any(witness.kernel.is_busy() for witness in self._witnesses):
            return self._busy_seconds
        return min(self._idle_seconds, _NOTICE_BUSY_SECONDS)

    def _sample_due(self, host: HostCollector) -> None:
        now = time.monotonic()
        due = [witness for witness in self._witnesses if self._is_due(witness, now)]
        if not due:
            return
        try:
            machine = host.collect()
        except SourceUnavailable:
            machine = {}
        for witness in due:
            if not witness.sample(machine, self._groups):
                if not witness.handle.is_running():
                    self._on_gone(witness)
                continue
            kill = witness.child_kills.take(time.time())
            if kill is not None:
                self._report_child(witness, kill)

    def _is_due(self, witness: Witness, now: float) -> bool:
        planned = witness.due
        # A kernel that turned busy while it was planned for later is due now.
        if now < planned - 0.005 and not (
            planned - now > self._busy_seconds and witness.kernel.is_busy()
        ):
            return False
        pause = self._busy_seconds if witness.kernel.is_busy() else self._idle_seconds
        witness.due = now + pause if planned < now - pause else planned + pause
        return True

    def _report_child(self, witness: Witness, kill: ChildKill) -> None:
        log = self._system_log(kill.before.time, wait=False)
        named = {int(a or b) for line in log.lines for a, b in _VICTIM.findall(line.text)}
        ended = kill.ended
        if named:
            ended = tuple(pid for pid in ended if pid in named)
        elif any(
            k.group == witness.own_group and abs(k.died - kill.time) < _NEIGHBOUR_SECONDS
            for k in self._kills
        ):
            return  # the counter rose for another kernel of this group
        if not ended or witness.was_asked_to_end():
            return
        facts = witness.child_facts(kill.before, kill.after, ended, kill.time)
        death = self._death(witness, self._with_gpus(facts), log)

        def hand_on() -> None:
            with shielded("reporting a killed child"):
                self._on_death(death)

        if not self._stopping:
            self._deaths.submit(hand_on)

    def stop(self) -> None:
        """Stop watching; deaths that are being gathered are handed on first (a second at most for each)."""
        self._stopping = True
        self._wake.set()
        self._live.stop()
        if self._sampler is not None:
            self._sampler.join(2)
        self._deaths.shutdown(wait=True)
        for witness in self._witnesses:
            witness.close()
        self._witnesses = ()
        self._log.close()


def _may_be_oom(facts: ServerFacts) -> bool:
    """False when no OOM killer was at work on this machine since the last look, as far as counters tell."""
    before, after = facts.before, facts.after
    if before is None or after is None:
        return facts.exit is None or facts.exit.signal == "SIGKILL"
    old, new = before.host_oom_kill_count, after.host_oom_kill_count
    return old is None or new is None or new > old
