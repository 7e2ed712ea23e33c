"""A small container for one tool: a memory limit, a small /dev/shm, and a view of its own memory group. Linux, as root.

A tool in it finds its memory group where a container shows it (``/sys/fs/cgroup/memory``, or ``/sys/fs/cgroup`` in version
2). Its processes, files and network are those of the machine.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from jupyter_tfguard.demo.limits import LimitedGroup

MIB = 1 << 20
GIB = 1 << 30
SHM_BYTES = 64 * MIB  # what Docker gives a container that does not ask
_VERSION_1 = Path("/sys/fs/cgroup/memory")
_MOUNT = "mount -t tmpfs -o size={shm} comparison /dev/shm && mount --bind {group} {view}"


class NoContainer(Exception):
    """This machine does not allow a container; the text says why."""


@contextlib.contextmanager
def container(folder: Path, python: str, limit_bytes: int) -> Iterator[str]:
    """An interpreter that runs in a container of its own.

    Args:
        folder: Where the program is written that starts `python` there.
        python: An interpreter.
        limit_bytes: Memory limit of everything in the container.

    Raises:
        NoContainer: The rights are missing.
        NoLimitPossible: No memory group can be made.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise NoContainer("a private mount needs root and unshare(1)")
    group = LimitedGroup(limit_bytes)
    try:
        _allow_swap(group.folder, 2 * limit_bytes)
        program = folder / "python"
        program.write_text(_script(python, group.folder))
        program.chmod(0o755)
        tried = subprocess.run([program, "-c", ""], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            raise NoContainer(tried.stderr.strip()[-300:])
        yield str(program)
    finally:
        _end_all(group.folder)
        group.remove()


def _allow_swap(group: Path, limit_bytes: int) -> None:
    """Twice the memory for memory and swap together, as Docker sets it: only then the hits of version 1 are counted as usual."""
    with contextlib.suppress(OSError):  # version 2, or no accounting of swap
        (group / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes))


def _end_all(group: Path) -> None:
    """Kill what a tool left behind in its container."""
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _script(python: str, group: Path) -> str:
    view = _VERSION_1 if _VERSION_1.is_dir() else _VERSION_1.parent
    mount = _MOUNT.format(shm=SHM_BYTES, group=shlex.quote(str(group)), view=view)
    start = f'{mount} && exec {shlex.quote(python)} "$@"'
    return (
        f"#!/bin/sh\necho $$ > {shlex.quote(str(group / 'cgroup.procs'))}\n"
        f'exec unshare --mount sh -c {shlex.quote(start)} sh "$@"\n'
    )
