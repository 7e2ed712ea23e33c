"""Holds what is needed to record and forward a kernel's last native text after its end (``record/late_stderr.py``).

While the kernel runs nothing is read here: the kernel reads its pipe itself (``record/stderr_tail.py``). After its end the
pipe is read and closed, so that a child that outlives the kernel gets EPIPE at its next write, as it would without tfguard.

The text is written to this process's own stderr if the kernel inherited it; otherwise to the pipe or file that the kernel
had, if it can be opened.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...decode import dict_of
from ...record.identity import ProcessIdentity
from ...record.late_stderr import POSITION, finish, opened_again, wait_for_lock

_STDERR = 2
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_WRITE_FLAGS = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class HeldStderr:
    """Pipe, position and original stderr of one kernel, from :meth:`hold` to :meth:`finish` or :meth:`close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._claimed: tuple[tuple[int, int] | None, ...] = (None, None, None)
        self._held: tuple[int, int, int] | None = None

    @property
    def is_held(self) -> bool:
        """True while there is something to finish after the kernel's end."""
        return self._held is not None

    def hold(self, process: ProcessIdentity, guard: Any) -> None:
        """Hold what the kernel's header names; release it if the header names no pipe.

        Args:
            process: The kernel's process.
            guard: The header's ``guard``: not trusted.
        """
        claimed = tuple(_part(guard, f"stderr_{name}") for name in ("pipe", "position", "original"))
        with self._lock:
            if self._closed or claimed == self._claimed:
                return
            self._release()
            self._claimed = claimed
            pipe, position, original = claimed
            opened = _opened(process, pipe, _READ_FLAGS, _is_pipe)
            if opened is not None:
                shared = _opened(process, position, os.O_RDWR, _is_position)
                self._held = opened, -1 if shared is None else shared, _original(process, original)

    def detach(self) -> HeldStderr:
        """Move everything to a new object, which is returned; this one is closed."""
        other = HeldStderr()
        with self._lock:
            other._held, self._held = self._held, None
            self._closed = True
        return other

    def finish(self, recording: Path, child_seconds: float = 0.0) -> None:
        """After the kernel's end, add the rest of its native text to its recording and forward it; close everything.

        Args:
            recording: The folder; it need not exist.
            child_seconds: How long to wait at most for children that still hold the pipe.
        """
        with self._lock:
            held, self._held = self._held, None
            self._closed = True
        if held is None:
            return
        with contextlib.ExitStack() as closes:
            for descriptor in held:
                closes.callback(_close, descriptor)
            folder = None
            with contextlib.suppress(OSError):
                folder = os.open(recording, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                closes.callback(_close, folder)
                wait_for_lock(folder)
            finish(folder, *held, child_seconds=child_seconds)

    def close(self) -> None:
        """Close everything permanently; idempotent."""
        with self._lock:
            self._closed = True
            self._release()

    def _release(self) -> None:
        held, self._held = self._held, None
        for descriptor in held or ():
            _close(descriptor)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _part(guard: Any, name: str) -> tuple[int, int] | None:
    """Descriptor and inode in the header."""
    fields = dict_of(dict_of(guard).get(name))
    descriptor, inode = fields.get("descriptor"), fields.get("inode")
    return (descriptor, inode) if type(descriptor) is int and type(inode) is int else None


def _is_pipe(found: os.stat_result) -> bool:
    return stat.S_ISFIFO(found.st_mode)


def _is_position(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_size == POSITION.size and not found.st_nlink


def _opened(
    process: ProcessIdentity,
    part: tuple[int, int] | None,
    flags: int,
    is_kind: Callable[[os.stat_result], bool],
) -> int | None:
    """A descriptor of the file that the process has open; None if it is another one, or cannot be opened."""
    if part is None:
        return None
    path, inode = f"/proc/{process.pid}/fd/{part[0]}", part[1]

    def is_it(found: os.stat_result) -> bool:
        return is_kind(found) and found.st_ino == inode

    with contextlib.suppress(OSError):  # the process just ended, or access is denied
        # Checked before opening: opening a device may have side effects.
        if is_it(os.stat(path)):
            opened = os.open(path, flags | os.O_CLOEXEC)
            if is_it(os.fstat(opened)) and process.is_running():
                return opened
            os.close(opened)
    return None


def _original(process: ProcessIdentity, part: tuple[int, int] | None) -> int:
    """A descriptor for the kernel's original stderr; -1 if there is none."""
    if part is None:
        return -1
    with contextlib.suppress(OSError):
        if os.path.samestat(os.stat(f"/proc/{process.pid}/fd/{part[0]}"), os.fstat(_STDERR)):
            return opened_again(_STDERR)
    opened = _opened(process, part, _WRITE_FLAGS | os.O_APPEND, _is_writable)
    return -1 if opened is None else opened


def _is_writable(found: os.stat_result) -> bool:
    return stat.S_ISFIFO(found.st_mode) or stat.S_ISREG(found.st_mode)
