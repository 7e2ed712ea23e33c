"""Checks that the data folder is writable, has free space, and outlives the container."""

from __future__ import annotations

import shutil
from pathlib import Path

from ...errors import FolderUnusable
from ...mounts import mount_of
from ...places import (
    DIRECTORY_VARIABLE,
    LIVE_VARIABLE,
    copies_folder,
    data_folder,
    recordings_folder,
    slow_recordings,
)
from ...private_files import PrivateFolder
from ...units import human_bytes
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "data folder"
# A kernel needs a few MiB; all reports together need 64 MiB.
_LEAST_FREE_BYTES = 256 * 1024 * 1024
# File systems of the writable layer of a container.
_LAYERS = ("overlay", "aufs", "fuse.fuse-overlayfs")


def check(machine: Environment) -> list[CheckResult]:
    """Write and remove one small file; check the free space and the mount."""
    path = data_folder()
    try:
        folder = PrivateFolder(path)
        folder.write_whole("doctor.probe", b"written by jupyter tfguard doctor\n")
        folder.remove("doctor.probe")
        free = shutil.disk_usage(path).free
    except (FolderUnusable, OSError) as bad:
        fix = f"export {DIRECTORY_VARIABLE}=$HOME/.tfguard"
        return [CheckResult(NAME, Status.PROBLEM, f"{path}: {bad}", fix)]
    results = []
    if free < _LEAST_FREE_BYTES:
        text = f"{path} has {human_bytes(free)} free space: reports may not fit"
        results.append(CheckResult(NAME, Status.WARNING, text, "jupyter tfguard forget --all"))
    if _goes_with_the_container(machine, path):
        text = f"{path} is inside the container: the reports are lost when the container is removed"
        fix = f"export {DIRECTORY_VARIABLE}=/a/mounted/volume/tfguard"
        results.append(CheckResult(NAME, Status.WARNING, text, fix))
    if (slow := slow_recordings()) is not None:
        fix = f"export {LIVE_VARIABLE}=/a/local/folder/of/your/own"
        results.append(CheckResult(NAME, Status.WARNING, slow, fix))
    if results:
        return results
    text = f"{path} is writable, {human_bytes(free)} free"
    if copies_folder() is not None:
        text += f"; it is on another machine, so running kernels record to {recordings_folder()}"
    return [CheckResult(NAME, Status.OK, text)]


def _goes_with_the_container(machine: Environment, path: Path) -> bool:
    mount = mount_of(path, machine.path("/proc/self/mountinfo"))
    if mount is None:
        return False
    return mount.kind in _LAYERS or (machine.in_container and mount.point == "/")
