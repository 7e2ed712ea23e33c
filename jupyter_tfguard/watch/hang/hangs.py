"""Detects kernels that hang in the middle of a cell, in a separate thread, and captures their stacks."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...collectors.process_activity import Wait, catches
from ...errors import FolderUnusable
from ...private_files import PrivateFolder
from ...record.facts import Hang
from ...record.identity import ProcessIdentity
from ...record.recording import STACKS, STACKS_WANTED
from ...record.stacks import LIMIT_BYTES, claims, stacks_of, user_first
from ..gpu.gpu_helper import Gpus
from ..monitored import MonitoredKernel
from ..polling import PollThread
from .hang_detector import HangDetector, Waiting, waits_for_user
from .stalls import Stall

_POLL_EVERY_SECONDS = 10.0
_POLL_COUNT = 10  # polls at least, before a kernel is reported as hanging
_ANSWER_SECONDS = 3.0
_SIGNAL_SECONDS = 2.0
_POLL_SECONDS = 0.05
_one_at_a_time = threading.Lock()


class Hangs(PollThread):
    """Fills :attr:`MonitoredKernel.hang`.

    Args:
        recordings: Folder of the kernels' recordings.
        monitored_kernels: Returns the kernels that are tracked now.
        gpus: State of the GPUs.
        hang_seconds: How long a kernel must make no progress.
    """

    def __init__(
        self,
        recordings: Path,
        monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]],
        gpus: Callable[[], Gpus],
        hang_seconds: float,
    ) -> None:
        super().__init__("tfguard-hangs", monitored_kernels)
        self._recordings = recordings
        self._gpus = gpus
        self._hang_seconds = hang_seconds
        self._kernels: dict[MonitoredKernel, tuple[HangDetector, Stall]] = {}
        self._polled_at = -_POLL_EVERY_SECONDS

    def _round(self, monitored_kernels: tuple[MonitoredKernel, ...], now: float) -> float:
        pause = min(_POLL_EVERY_SECONDS, self._hang_seconds / _POLL_COUNT)
        if (
            now < self._polled_at + pause
        ):  # a new kernel woke the loop: too early, CPU time is counted in coarse ticks
            return self._polled_at + pause - now
        self._polled_at = now
        self._kernels = {
            one: self._kernels.get(one) or (HangDetector(one), Stall(one, self._hang_seconds))
            for one in monitored_kernels
        }
        gpu_works = any(d.get("utilization_fraction") for d in self._gpus().devices)
        for monitored, followers in self._kernels.items():
            if not self._stopping and not monitored.kernel.is_ending():
                self._poll_kernel(monitored, *followers, gpu_works)
        return pause

    def _poll_kernel(
        self, monitored: MonitoredKernel, detector: HangDetector, stall: Stall, gpu_works: bool
    ) -> None:
        found = detector.poll(gpu_works=gpu_works)
        is_overdue = stall.poll(gpu_works=gpu_works)
        if found is None:
            # Activity during shutdown is not progress, and the shutdown may have begun during the poll.
            if monitored.kernel.is_ending():
                return
            if not is_overdue:
                monitored.hang = None
            elif monitored.hang is None or monitored.hang.wait != Wait.RUNNING.value:
                monitored.hang = self._stalled(monitored, stall)
        elif detector.still_seconds >= self._hang_seconds and monitored.hang is None:
            monitored.hang = self._hang(monitored, detector, found)

    def _hang(
        self, monitored: MonitoredKernel, detector: HangDetector, found: Waiting
    ) -> Hang | None:
        """The hang; None if the kernel waits for user input."""
        lines, main = self._take(monitored, hanging=True)
        frames = stacks_of(lines).get(main or "")
        if frames and waits_for_user(frames):
            detector.moved()
            return None
        return Hang(
            since=detector.since,
            noticed=time.time(),
            wait=found.wait.value,
            in_fit=found.in_fit,
            forks=found.forks,
            stacks=tuple(lines),
            main_thread=main if frames else None,
        )

    def _stalled(self, monitored: MonitoredKernel, stall: Stall) -> Hang | None:
        """The fit without steps; None if its stacks show another cause, or could not be read."""
        lines, main = self._take(monitored, hanging=False)
        stacks = stacks_of(lines)
        if not stacks or not stall.is_stall(stacks, main):
            return None
        return Hang(
            since=stall.since,
            noticed=time.time(),
            wait=Wait.RUNNING.value,
            in_fit=True,
            stacks=tuple(lines),
            main_thread=main if main in stacks else None,
        )

    def stacks(self, monitored: MonitoredKernel) -> list[str]:
        """Current Python stacks of all threads of this kernel; empty if they could not be read."""
        hang = monitored.hang
        hanging = hang is not None and hang.wait != Wait.RUNNING.value
        lines, _ = self._take(monitored, hanging=hanging)
        hang = monitored.hang
        if lines and hang is not None:
            monitored.hang = dataclasses.replace(hang, stacks=tuple(lines))
        return lines

    def _take(self, monitored: MonitoredKernel, *, hanging: bool) -> tuple[list[str], str | None]:
        """The stacks, and the name of the main thread in them."""
        recording = self._recordings / monitored.identity.folder_name
        header = monitored.live.header
        main = claims(header).get("main_thread")
        main = main if isinstance(main, str) else None
        lines = take_stacks(monitored.identity, recording, header, hangs=hanging)
        return user_first(lines, main), main


def take_stacks(
    process: ProcessIdentity, recording: Path, header: dict[str, Any] | None, *, hangs: bool
) -> list[str]:
    """Request the Python stacks of all threads of a kernel; empty if it did not answer. Takes up to some seconds.

    The request is first made with a file. The guard's thread in the kernel finds it and writes the stacks while it
    holds the GIL, so that no other thread runs. A kernel whose GIL is held by native code does not answer. If such a
    kernel hangs, the real-time signal that its guard has reserved is sent to that thread alone. ``kernel/capture/stacks.py``
    answers.

    Args:
        process: The kernel's process.
        recording: Folder of its recording.
        header: Header of the recording.
        hangs: The kernel hangs: send the signal if it does not answer.
    """
    if not claims(header):
        return []
    with _one_at_a_time, contextlib.suppress(OSError, FolderUnusable):
        folder = PrivateFolder(recording, make=False)
        if _by_file(folder) or (hangs and _by_signal(process, folder, claims(header))):
            text = folder.read(STACKS, LIMIT_BYTES) or b""
            return text.decode("utf-8", "replace").splitlines()
    return []


def _by_file(folder: PrivateFolder) -> bool:
    os.close(folder.create(STACKS_WANTED))
    if _until(lambda: not folder.has(STACKS_WANTED), _ANSWER_SECONDS):
        return True
    with contextlib.suppress(OSError):
        folder.remove(STACKS_WANTED)
    return False


def _by_signal(process: ProcessIdentity, folder: PrivateFolder, claimed: dict[str, Any]) -> bool:
    """Send the signal, and wait until the text is complete."""
    number, thread, pid = claimed.get("signal"), claimed.get("thread"), process.pid
    # The header is not trusted: any other signal could end the kernel, and so could this one without its handler.
    if type(number) is not int or type(thread) is not int or not _is_real_time(number):
        return False
    if not process.is_running() or not catches(pid, number):
        return False
    descriptor = folder.open(STACKS, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, 0)
        if not _signal_thread(pid, thread, number):
            return False
        sizes = [-1, 0]

        def is_whole() -> bool:
            sizes.append(os.fstat(descriptor).st_size)
            return sizes[-1] > 0 and sizes[-1] == sizes[-2] == sizes[-3]

        return _until(is_whole, _SIGNAL_SECONDS)
    finally:
        os.close(descriptor)


def _is_real_time(number: int) -> bool:
    return hasattr(signal, "SIGRTMIN") and signal.SIGRTMIN <= number <= signal.SIGRTMAX


def _signal_thread(pid: int, thread: int, number: int) -> bool:
    """Signal one thread of a process; False if that failed. Source: tgkill(2), in glibc since 2.30."""
    try:
        return bool(ctypes.CDLL(None).tgkill(pid, thread, number) == 0)
    except (OSError, AttributeError):
        return False


def _until(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True
