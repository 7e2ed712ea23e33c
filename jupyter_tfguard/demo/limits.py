"""A real memory limit around one process, where this machine lets us set one.

Tried in order: a control group of our own (version 2 or 1, needs the right to make one: root, or a delegated group), then
a scope of the user's systemd. Source: cgroup-v2.rst and cgroup-v1/memory.rst of Linux; org.freedesktop.systemd1(5).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from ..collectors.memory_group import memory_groups
from ..errors import SourceUnavailable, TfGuardError

_numbers = itertools.count(1)


class NoLimitPossible(TfGuardError):
    """This machine lets us set no memory limit; the text says what was tried."""


class LimitedGroup:
    """A control group with a memory limit.

    Args:
        limit_bytes: The limit; swap is switched off with it.

    Raises:
        NoLimitPossible: No group can be made here.
    """

    def __init__(self, limit_bytes: int) -> None:
        reasons, number = [], next(_numbers)
        for parent, version in _candidates():
            folder = parent / f"tfguard-demo-{os.getpid()}-{number}"
            try:
                folder.mkdir()
            except OSError as bad:
                reasons.append(f"{parent}: {bad.strerror}")
                continue
            try:
                _set_limit(folder, version, limit_bytes)
            except OSError as bad:
                reasons.append(f"{folder}: {bad.strerror}")
                with contextlib.suppress(OSError):
                    folder.rmdir()
                continue
            self.folder = folder
            return
        raise NoLimitPossible(
            "; ".join(dict.fromkeys(reasons)) or "no memory controller is visible"
        )

    def add(self, pid: int) -> None:
        """Move a process into the group.

        Raises:
            NoLimitPossible: The system refused.
        """
        try:
            (self.folder / "cgroup.procs").write_text(str(pid))
        except OSError as bad:
            raise NoLimitPossible(f"{self.folder}: {bad.strerror}") from bad

    def remove(self) -> None:
        """Delete the group once its processes are gone; tried for two seconds."""
        for _ in range(20):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.1)


class SystemdScope:
    """A transient scope of the user's systemd with a memory limit.

    Raises:
        NoLimitPossible: There is no systemd of the user's to ask.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._busctl = shutil.which("busctl") or ""
        if not self._busctl or not os.environ.get("XDG_RUNTIME_DIR"):
            raise NoLimitPossible("no systemd of this user is running")

    def add(self, pid: int) -> None:
        """Move a process into the scope. Raises as :meth:`LimitedGroup.add`."""
        done = subprocess.run(
            self.command(pid), capture_output=True, text=True, timeout=20, check=False
        )
        if done.returncode != 0:
            raise NoLimitPossible(f"systemd refused a scope: {done.stderr.strip()[:200]}")

    def command(self, pid: int) -> list[str]:
        """The call of StartTransientUnit(name, mode, properties, aux)."""
        manager = "org.freedesktop.systemd1"
        call = [
            self._busctl,
            "--user",
            "call",
            manager,
            "/org/freedesktop/systemd1",
            f"{manager}.Manager",
        ]
        limit = str(self._limit_bytes)
        properties = [
            "3",
            "PIDs",
            "au",
            "1",
            str(pid),
            "MemoryMax",
            "t",
            limit,
            "MemorySwapMax",
            "t",
            "0",
        ]
        name = f"tfguard-demo-{os.getpid()}-{pid}.scope"
        return [*call, "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", *properties, "0"]

    def remove(self) -> None:
        """Nothing to do: the scope ends with its last process."""


def make_limit(limit_bytes: int) -> LimitedGroup | SystemdScope:
    """The first way that works here.

    Raises:
        NoLimitPossible: None does; the text says why.
    """
    reasons = []
    for way in (LimitedGroup, SystemdScope):
        try:
            return way(limit_bytes)
        except NoLimitPossible as no:
            reasons.append(str(no))
    raise NoLimitPossible("; ".join(reasons))


def _candidates() -> Iterator[tuple[Path, int]]:
    """Groups that a limited group could be made in: our own, then its ancestors."""
    try:
        groups = memory_groups(os.getpid())
    except SourceUnavailable as no:
        raise NoLimitPossible(str(no)) from no
    for group in groups:
        yield Path(group.directory), group.version


def _set_limit(folder: Path, version: int, limit_bytes: int) -> None:
    if version == 2:
        (folder / "memory.max").write_text(str(limit_bytes))
        with contextlib.suppress(OSError):  # a system without swap accounting has no such file
            (folder / "memory.swap.max").write_text("0")
        return
    (folder / "memory.limit_in_bytes").write_text(str(limit_bytes))
    with contextlib.suppress(OSError):
        (folder / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes))
