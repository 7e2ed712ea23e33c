"""Checks that /dev/shm is large enough. TensorFlow itself needs none; worker processes and NCCL use it for data."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...mounts import mount_of
from ...units import KIB, human_bytes
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "shared memory"
_FOLDER = "/dev/shm"
_LEAST_BYTES = 256 * 1024 * KIB
_FULL_FRACTION = 0.9
# rw,size=65536k    also in bytes, m, g and per cent: tmpfs(5)
_SIZE = re.compile(r"(?:^|,)size=(\d+)([kmg]?)(?:,|$)", re.IGNORECASE)
_UNITS = {"": 1, "k": KIB, "m": KIB**2, "g": KIB**3}


def check(machine: Environment) -> CheckResult | None:
    """Check the mounted size. Containers have 64 MiB by default."""
    if machine.system != "linux":
        return None
    folder = machine.path(_FOLDER)
    if not folder.is_dir():
        text = f"{_FOLDER} does not exist: libraries that share memory between processes fail."
        return CheckResult(NAME, Status.WARNING, text, "mount -t tmpfs shm /dev/shm")
    mount = mount_of(Path(_FOLDER), machine.path("/proc/self/mountinfo"))
    found = _SIZE.search(mount.options) if mount is not None and mount.kind == "tmpfs" else None
    size = int(found[1]) * _UNITS[found[2].lower()] if found else None
    if size is not None and size < _LEAST_BYTES:
        text = (
            f"{_FOLDER} has {human_bytes(size)}. Worker processes and NCCL pass data through it, and SIGBUS kills a kernel "
            "that finds it full."
        )
        return CheckResult(NAME, Status.WARNING, text, _fix(machine))
    space = os.statvfs(folder)
    used = 1 - space.f_bavail / space.f_blocks if space.f_blocks else 0.0
    if used > _FULL_FRACTION and mount is not None and mount.point == _FOLDER:
        text = f"{used:.0%} of {_FOLDER} is in use: SIGBUS kills a kernel that finds it full."
        return CheckResult(NAME, Status.WARNING, text, f"ls -lS {_FOLDER}")
    size_text = "no size of its own" if size is None else human_bytes(size)
    return CheckResult(NAME, Status.OK, f"{_FOLDER} has {size_text}")


def _fix(machine: Environment) -> str:
    if machine.in_container:
        return "docker run --shm-size=2g ..."
    return f"mount -o remount,size=2g {_FOLDER}"
