"""Limits the memory of the calling kernel, so that a guide's cell can run out of memory without other harm."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from ..errors import SourceUnavailable
from ..kernel.current import current
from ..memory.groups import MemoryGroup, memory_groups
from ..units import GIB, human_bytes
from .limits import NAME_PREFIX, NoLimitPossible, make_limit, set_limit

_STOP = "Do not run the next cell: without a limit it could use up the memory of this machine. Read its stored output instead."


def limit_memory(gib: float = 2.0) -> None:
    """Limit the memory of this kernel and of the processes it starts later, until the kernel ends.

    A second call changes the limit. The kernel that Jupyter starts next has no limit. tfguard sees the limit after about a
    second. Its stop is paused, because the guides show real crashes.

    Args:
        gib: The limit in GiB. Swap is disabled too.

    Raises:
        NoLimitPossible: This machine does not allow a limit, or has less memory available.
            The text lists what was tried.
    """
    limit_bytes = int(gib * GIB)
    available = psutil.virtual_memory().available
    if limit_bytes > available:
        free, asked = human_bytes(available), human_bytes(limit_bytes)
        raise NoLimitPossible(f"This machine has {free} available, less than {asked}. {_STOP}")
    remove_left_groups()
    try:
        _limit_this_process(limit_bytes)
    except NoLimitPossible as no:
        raise NoLimitPossible(f"No memory limit can be set here. Tried: {no}. {_STOP}") from no
    print(
        f"Memory limit of this kernel: {human_bytes(limit_bytes)}. "
        "If it needs more, the system ends this kernel and nothing else. The machine is safe."
    )
    if (session := current()) is not None:
        session.pause_stop()
        print("tfguard's stop is paused, so that a cell can really end the kernel.")


def remove_left_groups() -> None:
    """Delete the groups of kernels that have ended. A kernel cannot delete its own group."""
    for group in _visible_groups():
        for left in Path(group.directory).glob(f"{NAME_PREFIX}*"):
            pid = left.name.removeprefix(NAME_PREFIX).partition("-")[0]
            if pid.isdigit() and not psutil.pid_exists(int(pid)):
                with contextlib.suppress(OSError):  # still in use, or owned by another user
                    left.rmdir()


def _limit_this_process(limit_bytes: int) -> None:
    for group in _visible_groups():
        if group.own and Path(group.directory).name.startswith(NAME_PREFIX):  # a second call
            try:
                set_limit(Path(group.directory), group.version, limit_bytes)
            except OSError as bad:
                raise NoLimitPossible(f"{group.directory}: {bad.strerror}") from bad
            return
    limit = make_limit(limit_bytes)
    try:
        limit.add(os.getpid())
    except NoLimitPossible:
        limit.remove()
        raise


def _visible_groups() -> tuple[MemoryGroup, ...]:
    try:
        return memory_groups(os.getpid())
    except SourceUnavailable:
        return ()
