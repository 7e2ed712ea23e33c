"""Asks a kernel for the Python stacks of all its threads; ``kernel/stacks.py`` is the other end.

First by a file, which the guard's own thread in the kernel finds: it writes while it holds the interpreter's lock, and so
no thread runs meanwhile. A kernel whose lock is held by native code gives no answer; one that stands still is then sent
the real-time signal that its guard has taken, to that thread alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..collectors.standstill import catches
from ..errors import FolderUnusable
from ..record.folders import PrivateFolder
from ..record.identity import ProcessIdentity
from ..record.recording import STACKS, STACKS_WANTED
from ..record.stacks import HEADER_KEY, LIMIT_BYTES

_ANSWER_SECONDS = 3.0
_SIGNAL_SECONDS = 2.0
_POLL_SECONDS = 0.05
_one_at_a_time = threading.Lock()


def claims(header: dict[str, Any] | None) -> dict[str, Any]:
    """What the kernel says of its stacks; empty without a guard."""
    found = (header or {}).get(HEADER_KEY)
    return found if isinstance(found, dict) else {}


def service_threads(header: dict[str, Any] | None) -> tuple[int, ...]:
    """Native ids of the threads of the kernel's machinery, as it claims them; empty when not known."""
    found = claims(header).get("service_threads")
    return tuple(t for t in found[:100] if type(t) is int) if isinstance(found, list) else ()


def take_stacks(
    process: ProcessIdentity, recording: Path, header: dict[str, Any] | None, *, stands_still: bool
) -> list[str]:
    """Lines of the stacks; empty when they could not be had. Takes up to some seconds.

    Args:
        process: The kernel's.
        recording: Folder of its recording.
        header: Of the recording.
        stands_still: Send the signal if the kernel does not answer.
    """
    if not claims(header):
        return []
    with (
        _one_at_a_time,
        contextlib.suppress(OSError, FolderUnusable),
        PrivateFolder(recording, make=False) as folder,
    ):
        if _asked(folder) or (stands_still and _forced(process, folder, claims(header))):
            text = folder.read(STACKS, LIMIT_BYTES) or b""
            return text.decode("utf-8", "replace").splitlines()
    return []


def _asked(folder: PrivateFolder) -> bool:
    os.close(folder.create(STACKS_WANTED))
    if _until(lambda: not folder.has(STACKS_WANTED), _ANSWER_SECONDS):
        return True
    with contextlib.suppress(OSError):
        folder.remove(STACKS_WANTED)
    return False


def _forced(process: ProcessIdentity, folder: PrivateFolder, claimed: dict[str, Any]) -> bool:
    """Send the signal, and wait until the text is whole."""
    number, thread, pid = claimed.get("signal"), claimed.get("thread"), process.pid
    # The header is the kernel's claim: any other signal could end it, and so could this one without its handler.
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
    """Signal one thread of a process; False where that cannot be done. Source: tgkill(2), in glibc since 2.30."""
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
