"""A memory limit around the kernel that calls, so that a cell of a guide can run out of memory and harm nothing else."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from ..collectors.memory_group import MemoryGroup, memory_groups
from ..errors import SourceUnavailable
from ..units import GIB, human_bytes
from .limits import NAME_PREFIX, NoLimitPossible, make_limit, set_limit

_STOP = "Do not run the next cell: without a limit it could use up the memory of this machine. Read its stored output instead."


def limit_memory(gib: float = 2.0) -> None:
    """Limit the memory of this kernel and of the processes it starts later, until the kernel ends.

    A second call changes the limit. The kernel that Jupyter starts next has no limit. tfguard sees the limit after about a
    second.

    Args:
        gib: The limit. Swap is switched off with it.

    Raises:
        NoLimitPossible: This machine lets you set no limit, or has less memory than that. The text says what was tried.
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


def remove_left_groups() -> None:
    """Delete the groups of kernels that have ended; an ended kernel cannot delete its own."""
    for group in _visible_groups():
        for left in Path(group.directory).glob(f"{NAME_PREFIX}*"):
            pid = left.name.removeprefix(NAME_PREFIX).partition("-")[0]
            if pid.isdigit() and not psutil.pid_exists(int(pid)):
                with contextlib.suppress(OSError):  # still in use, or of another user
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
