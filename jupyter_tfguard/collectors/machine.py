"""What kind of machine this is: container, virtual machine or none; processor cores; memory. Nothing that names it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import SourceUnavailable
from ..procfs import read_small

_MARKS = (".dockerenv", "run/.containerenv", ".singularity.d")


def is_container(environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether this is a container, as far as can be detected."""
    declared = "KUBERNETES_SERVICE_HOST" in environ or "container" in environ
    return declared or any((root / mark).exists() for mark in _MARKS)


def machine() -> dict[str, object]:
    """The machine, for a bundle: ``{"system", "in_container", "is_virtual", "cores", "memory_bytes"}``; None = unknown.

    Cores: those that this process may use. Source: ``hypervisor`` in ``/proc/cpuinfo``, MemTotal of ``/proc/meminfo``.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    is_virtual = memory_bytes = None
    with contextlib.suppress(OSError, SourceUnavailable, ValueError, IndexError):
        is_virtual = b" hypervisor" in read_small("/proc/cpuinfo").partition(b"\n\n")[0]
        memory_bytes = 1024 * int(read_small("/proc/meminfo").split(b"MemTotal:")[1].split()[0])
    return {
        "system": sys.platform,
        "in_container": is_container(os.environ),
        "is_virtual": is_virtual,
        "cores": cores,
        "memory_bytes": memory_bytes,
    }
