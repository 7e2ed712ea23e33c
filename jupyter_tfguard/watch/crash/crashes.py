"""Collects the facts about each crash and reports it, one at a time, in a separate thread."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...collectors.os_log import SystemLogReader
from ...collectors.shared_memory import shared_memory
from ...record.facts import ExitFacts, ServerFacts, SharedMemory, SystemLog, SystemLogLine
from ...shield import shielded
from ..gpu.gpu_facts import gpu_facts, wait_for_word
from ..gpu.gpu_helper import Gpus
from ..gpu.gpu_map import GpuMap
from ..monitored import MonitoredKernel
from .child_kill import ChildKill
from .crash import Crash, of_child, of_kernel

_LOG_WAIT_SECONDS = 0.05
_STARTER_SECONDS = 10.0  # a large process on a busy machine needs long to end
# Python's resource tracker outlives its kernel and reports leaked shared memory 10 to 60 ms later on an idle machine.
_TRACKER_SECONDS = 0.7
_LOG_MARGIN_SECONDS = 2.0  # the log's clock differs from the wall clock
_NEIGHBOUR_SECONDS = 4.0
_GPUS_NOT_READ = "not read yet when the kernel ended"
# ... Killed process 4711 (python3) total-vm:...      oom-kill:constraint=...,task=python3,pid=4711,uid=0
_VICTIM = re.compile(r"Killed process (\d{1,10})\b|,pid=(\d{1,10}),uid=\d+$")


@dataclass(frozen=True)
class _Kill:
    """A kernel that was just ended by SIGKILL: it may be the reason why a group's counter rose."""

    group: str | None
    died: float


class Crashes:
    """Collects and reports crashes for the watcher.

    Args:
        recordings: Folder of the kernels' recordings.
        on_crash: Called in the thread, one crash at a time.
        gpus: State of the GPUs, recorded with a crash.
        gpu_map: GPU memory per kernel.

    Attributes:
        log: The system log.
    """

    def __init__(
        self,
        recordings: Path,
        on_crash: Callable[[Crash], None],
        gpus: Callable[[], Gpus],
        gpu_map: GpuMap,
    ) -> None:
        self._recordings = recordings
        self._on_crash = on_crash
        self._gpus = gpus
        self._gpu_map = gpu_map
        self.log = SystemLogReader()
        self._log_lock = threading.Lock()
        self._kills: deque[_Kill] = deque(maxlen=20)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tfguard-deaths")

    def accept(
        self,
        monitored: MonitoredKernel,
        ended: ExitFacts | None,
        died: float,
        *,
        asked: bool = False,
        by_starter: Callable[[], ExitFacts | None] | None = None,
        other_kernel_bytes: tuple[int, ...] | None = None,
    ) -> Future[None] | None:
        """Collect the facts about a crash, or about a requested end, and close the monitored kernel.

        Args:
            monitored: The kernel that ended.
            ended: The exit status; None if it is not known yet.
            died: Unix seconds.
            asked: The end was requested.
            by_starter: Reads the status from the parent process again: a process becomes a zombie before its last
                thread is gone, and can be waited for only after that.
            other_kernel_bytes: Resident memory of the other kernels at that moment.

        Returns:
            Completes once the crash was reported; None after :meth:`stop`.
        """
        noticed = time.monotonic()
        stderr = monitored.stderr.detach()
        monitored.close()
        if ended is not None and ended.signal == "SIGKILL" and not asked:
            self._kills.append(_Kill(monitored.group.path, died))

        def gather() -> Crash:
            # Before stderr is read: what the resource tracker removes earlier, it has already complained about there.
            shared = shared_memory()
            after = monitored.group.read_now()
            known = ended
            if known is None and by_starter is not None:
                known = _retry(by_starter, noticed + _STARTER_SECONDS)
            wait_seconds = _TRACKER_SECONDS if known and known.signal == "SIGBUS" else 0.0
            stderr.finish(self._recordings / monitored.identity.folder_name, wait_seconds)
            seen, pid = monitored.seen(died), monitored.identity.pid
            facts = of_kernel(seen, pid, monitored.children, known, after, asked=asked)
            facts = replace(facts, other_kernel_bytes=other_kernel_bytes)
            if shared is not None and known is not None and known.signal == "SIGBUS":
                facts = replace(facts, shared_memory=SharedMemory(*shared))
            if not asked:
                self._wait_for_gpus(monitored, known, died)
            facts = self._with_gpus(monitored, facts)
            before = facts.before.time if facts.before else died
            # The OOM killer counts first and writes then.
            written = noticed + _LOG_WAIT_SECONDS
            return self._crash(monitored, facts, self._system_log(min(before, died), written))

        submitted = self._submit(gather)
        if submitted is None:
            stderr.close()
        return submitted

    def accept_child(
        self, monitored: MonitoredKernel, kill: ChildKill, other_kernel_bytes: tuple[int, ...]
    ) -> None:
        """Report the kill of a child of a running kernel, unless the evidence points to another victim."""
        log = self._system_log(kill.before.time, 0.0)
        named = {int(a or b) for line in log.lines for a, b in _VICTIM.findall(line.text)}
        ended = kill.ended
        if named:
            ended = tuple(sorted(named & {*kill.known, *ended}))
        elif any(
            k.group == monitored.group.path and abs(k.died - kill.time) < _NEIGHBOUR_SECONDS
            for k in tuple(self._kills)
        ):
            return  # the counter rose because of another kernel of this group
        if not ended or monitored.was_asked_to_end():
            return
        facts = of_child(monitored.seen(kill.time), kill, ended)
        facts = replace(facts, other_kernel_bytes=other_kernel_bytes)
        crash = self._crash(monitored, self._with_gpus(monitored, facts), log)

        self._submit(lambda: crash)

    def _submit(self, gather: Callable[[], Crash]) -> Future[None] | None:
        def run() -> None:
            with shielded("reporting a crash"):
                self._on_crash(gather())

        try:
            return self._thread.submit(run)
        except RuntimeError:  # stopped in the meantime
            return None

    def _wait_for_gpus(
        self, monitored: MonitoredKernel, ended: ExitFacts | None, died: float
    ) -> None:
        with shielded("reading the GPU driver after a crash"):
            signal = ended.signal if ended is not None else None
            code = ended.code if ended is not None else None
            wait_for_word(self._gpu_map, monitored, signal, code, died)

    def _with_gpus(self, monitored: MonitoredKernel, facts: ServerFacts) -> ServerFacts:
        gpus = self._gpus()
        if gpus.state != "ok":
            reason = gpus.reason or _GPUS_NOT_READ
            facts = replace(facts, unavailable=facts.unavailable | {"NVML": reason})
        # Observations from before the driver stopped answering are kept.
        found: tuple[dict[str, Any], ...] = ()
        with shielded("reading the GPUs of a crashed kernel"):
            found = gpu_facts(self._gpu_map, monitored, facts.died)
        return replace(facts, gpus=found)

    def _crash(self, monitored: MonitoredKernel, facts: ServerFacts, log: SystemLog) -> Crash:
        kernel = monitored.kernel
        return Crash(
            identity=monitored.identity,
            kernel_id=kernel.kernel_id,
            kernel_name=kernel.kernel_name,
            notebook_path=kernel.notebook_path,
            recording=self._recordings / monitored.identity.folder_name,
            facts=facts,
            system_log=log,
        )

    def _system_log(self, since: float, written: float) -> SystemLog:
        """Lines since a Unix second, read after the monotonic second `written`."""
        if self.log.reason is None:
            time.sleep(min(max(0.0, written - time.monotonic()), _LOG_WAIT_SECONDS))
        with self._log_lock:
            lines = self.log.lines(since - _LOG_MARGIN_SECONDS)
            reason = self.log.reason
        return SystemLog(reason is None, reason, tuple(SystemLogLine(*line) for line in lines))

    def stop(self) -> None:
        """Report all pending crashes and stop."""
        self._thread.shutdown(wait=True)
        self.log.close()


def _retry(read_status: Callable[[], ExitFacts | None], until: float) -> ExitFacts | None:
    """The first result other than None until a monotonic deadline."""
    while (found := read_status()) is None and time.monotonic() < until:
        time.sleep(0.02)
    return found
