"""Surroundings that kernels are started in: a small shared memory, an address-space limit, a group with few threads."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from jupyter_tfguard.demo.limits import LimitedGroup, NoLimitPossible, SystemdScope, make_limit
from tests.crash.scene import CannotBePlayed

SMALL_SHARED_MEMORY = "small-shm"
SMALL_ADDRESS_SPACE = "ulimit-v"
NO_IPYKERNEL = "no-ipykernel"
MIB = 1 << 20
_numbers = itertools.count(1)


def write_settings(kernels: Path) -> None:
    """Kernel specifications of these names; `kernels` is a folder that the server looks into."""
    start = shlex.join([sys.executable, "-m", "ipykernel_launcher", "-f"])
    # As a container with ``--shm-size=8m`` has it: a mount that only this process and its children see.
    mount = "mount -t tmpfs -o size=8m tfguard-tests /dev/shm"
    shells = {
        SMALL_SHARED_MEMORY: f'exec unshare --mount sh -c \'{mount} && exec {start} "$1"\' sh "$1"',
        SMALL_ADDRESS_SPACE: f'ulimit -v 6291456; exec {start} "$1"',
        NO_IPYKERNEL: f'exec {shlex.quote(sys.executable)} -S -m ipykernel_launcher -f "$1"',
    }
    for name, script in shells.items():
        write_setting(kernels, name, ["sh", "-c", script, "sh", "{connection_file}"])


def write_setting(kernels: Path, name: str, argv: list[str], **environment: str) -> None:
    """One kernel specification, of a kernel that this command starts with this in its environment."""
    (kernels / name).mkdir(parents=True, exist_ok=True)
    spec = {"argv": argv, "display_name": name, "language": "python", "env": environment}
    content = json.dumps(spec)
    (kernels / name / "kernel.json").write_text(content)


def small_shared_memory_works() -> bool:
    """True where a private mount can be made."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/dev/shm"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def memory_limit(limit_bytes: int) -> Iterator[LimitedGroup | SystemdScope]:
    """A memory limit for kernels and others.

    Raises:
        CannotBePlayed: There is no right to make one.
    """
    try:
        limit = make_limit(limit_bytes)
    except NoLimitPossible as no:
        raise CannotBePlayed(f"no memory limit can be set here: {no}") from no
    try:
        yield limit
    finally:
        limit.remove()


@contextlib.contextmanager
def threads_limited(pid: int, more: int) -> Iterator[None]:
    """A group in which this process may have so many more threads than now (pids controller, version 1 or 2).

    Raises:
        CannotBePlayed: There is no right to make one.
    """
    root = Path("/sys/fs/cgroup/pids")
    root = root if root.is_dir() else Path("/sys/fs/cgroup")
    group = root / f"tfguard-tests-{os.getpid()}-{next(_numbers)}"
    try:
        group.mkdir()
        try:
            (group / "cgroup.procs").write_text(str(pid))
            now = int((group / "pids.current").read_text())
            (group / "pids.max").write_text(str(now + more))
        except OSError:
            group.rmdir()
            raise
    except OSError as no:
        raise CannotBePlayed(f"no limit of threads can be set here: {no}") from no
    try:
        yield
    finally:
        for left in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (root / "cgroup.procs").write_text(left)
        with contextlib.suppress(OSError):
            group.rmdir()
