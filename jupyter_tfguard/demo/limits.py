"""Sets a real memory limit for one process, if this machine allows it.

Tried in order: a new control group (version 2 or 1; requires root or a delegated group), then a scope of the user's
systemd. Source: cgroup-v2.rst and cgroup-v1/memory.rst of Linux; org.freedesktop.systemd1(5).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path

from ..errors import SourceUnavailable, TfGuardError
from ..memory.groups import memory_groups

_numbers = itertools.count(1)
NAME_PREFIX = "tfguard-demo-"  # followed by the id of the process that created it


class NoLimitPossible(TfGuardError):
    """This machine does not allow setting a memory limit. The text lists what was tried."""


class LimitedGroup:
    """A control group with a memory limit, created in our group or the nearest ancestor that allows it.

    Args:
        limit_bytes: The limit. Swap is disabled for the group.

    Raises:
        NoLimitPossible: No group can be created here.
    """

    def __init__(self, limit_bytes: int) -> None:
        name, reasons = f"{NAME_PREFIX}{os.getpid()}-{next(_numbers)}", []
        try:
            groups = memory_groups(os.getpid())
        except SourceUnavailable as no:
            raise NoLimitPossible(str(no)) from no
        for group in groups:
            self.folder = Path(group.directory, name)
            try:
                self.folder.mkdir()
                set_limit(self.folder, group.version, limit_bytes)
            except OSError as bad:
                reasons.append(f"{group.directory}: {bad.strerror}")
                with contextlib.suppress(OSError):
                    self.folder.rmdir()
            else:
                return
        raise NoLimitPossible("; ".join(reasons) or "no memory controller is visible")

    def add(self, pid: int) -> None:
        """Move a process into the group.

        Raises:
            NoLimitPossible: The system does not allow it.
        """
        try:
            (self.folder / "cgroup.procs").write_text(str(pid))
        except OSError as bad:
            raise NoLimitPossible(f"{self.folder}: {bad.strerror}") from bad

    def remove(self) -> None:
        """Delete the group after its processes have ended. Retries for two seconds."""
        for _ in range(20):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.1)


class SystemdScope:
    """A transient scope of the user's systemd with a memory limit.

    Raises:
        NoLimitPossible: No systemd of this user is running.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._busctl = shutil.which("busctl") or ""
        if not self._busctl or not os.environ.get("XDG_RUNTIME_DIR"):
            raise NoLimitPossible("no systemd of this user is running")

    def add(self, pid: int) -> None:
        """Move a process into the scope. Raises like :meth:`LimitedGroup.add`."""
        done = subprocess.run(
            self.command(pid), capture_output=True, text=True, timeout=20, check=False
        )
        if done.returncode != 0:
            raise NoLimitPossible(f"systemd refused a scope: {done.stderr.strip()[:200]}")

    def command(self, pid: int) -> list[str]:
        """The command that calls StartTransientUnit(name, mode, properties, aux)."""
        manager = (
            "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager"
        )
        properties = f"3 PIDs au 1 {pid} MemoryMax t {self._limit_bytes} MemorySwapMax t 0"
        unit = f"{NAME_PREFIX}{os.getpid()}-{pid}.scope"
        call = (
            f"--user call {manager} StartTransientUnit ssa(sv)a(sa(sv)) {unit} fail {properties} 0"
        )
        return [self._busctl, *call.split()]

    def remove(self) -> None:
        """Do nothing: the scope ends with its last process."""


def make_limit(limit_bytes: int) -> LimitedGroup | SystemdScope:
    """The first kind of limit that works here.

    Raises:
        NoLimitPossible: None works; the text says why.
    """
    try:
        return LimitedGroup(limit_bytes)
    except NoLimitPossible as no_group:
        try:
            return SystemdScope(limit_bytes)
        except NoLimitPossible as no_scope:
            raise NoLimitPossible(f"{no_group}; {no_scope}") from no_scope


def set_limit(folder: Path, version: int, limit_bytes: int) -> None:
    """Set the limit of a control group, including swap. Raises OSError."""
    if version == 2:
        limit, swap, swap_bytes = "memory.max", "memory.swap.max", 0
    else:  # in version 1, the second limit counts memory plus swap, and must not be below the first
        limit, swap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
        swap_bytes = limit_bytes
        with contextlib.suppress(OSError):
            (folder / swap).write_text("-1")
    (folder / limit).write_text(str(limit_bytes))
    with contextlib.suppress(OSError):  # a system without swap accounting has no such file
        (folder / swap).write_text(str(swap_bytes))
