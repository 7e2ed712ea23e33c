"""NVIDIA GPUs and their driver: what the OS kernel shows, and what the driver library (NVML) reports.

The library is queried in a separate process with a timeout (see :mod:`gpu`); no CUDA context is created.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SourceUnavailable
from ..procfs import read_text
from ..threads import background_thread

NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"  # the audio and USB functions of a card are separate devices
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@...)
_MODULE_VERSION = re.compile(r"NVRM version:.*?\s(\d{2,}\.\d+(?:\.\d+)*)\s")
_NO_LIBRARY, _VERSION_MISMATCH = 12, 18  # NVML_ERROR_LIBRARY_NOT_FOUND, _LIB_RM_VERSION_MISMATCH
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class NvidiaHardware:
    """What the OS kernel shows, without any library.

    Attributes:
        pci_drivers: The module that drives each GPU on the PCI bus: ``nvidia``, ``nouveau``; None for none.
        module_version: Version of NVIDIA's module loaded into the OS kernel; None if none is loaded.
        device_files: ``/dev/nvidia0`` and so on.
        is_wsl: The GPU belongs to Windows and is reached through ``/dev/dxg``.
    """

    pci_drivers: tuple[str | None, ...] = ()
    module_version: str | None = None
    device_files: tuple[str, ...] = ()
    is_wsl: bool = False

    @property
    def has_driver(self) -> bool:
        """Whether NVIDIA's driver is loaded."""
        return bool(self.module_version or self.device_files or self.is_wsl)

    @property
    def is_there(self) -> bool:
        """Whether there is an NVIDIA GPU. Under WSL it may be a GPU of another vendor."""
        return bool(self.pci_drivers) or self.has_driver


def nvidia_hardware(root: Path) -> NvidiaHardware:
    """The hardware of the machine whose file system is at `root`."""
    module = _MODULE_VERSION.search(_text(root / "proc/driver/nvidia/version"))
    numbered = [p.name for p in (root / "dev").glob("nvidia*") if p.name[6:].isdigit()]
    return NvidiaHardware(
        pci_drivers=tuple(_pci_drivers(root / "sys/bus/pci/devices")),
        module_version=module[1] if module else None,
        device_files=tuple(f"/dev/{name}" for name in sorted(numbered)),
        is_wsl=(root / "dev/dxg").exists(),
    )


@dataclass(frozen=True)
class DriverGpu:
    """One GPU as reported by the driver.

    Attributes:
        compute_capability: ``8.6``; None = unknown.
    """

    name: str
    compute_capability: str | None


@dataclass(frozen=True)
class DriverAnswer:
    """What the driver library reports.

    Attributes:
        reason: Why the query failed, as text for users; None if it succeeded, even without any GPU.
        mismatch: It failed because the module in the OS kernel has a different version.
        absent: This library is not installed; other libraries of the driver may be.
    """

    reason: str | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    gpus: tuple[DriverGpu, ...] = ()
    mismatch: bool = False
    absent: bool = False


def ask_driver(environ: Mapping[str, str], limit_seconds: float) -> DriverAnswer:
    """Query the driver library in a process with these environment variables, with a timeout in seconds."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_tfguard.collectors.gpu", "versions"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            # -m puts the current folder first on sys.path. The notebook folder may contain a json.py.
            cwd=_PACKAGE_PARENT,
        )
    except OSError as bad:
        return DriverAnswer(f"could not start the process that queries the driver: {bad.strerror}")
    answer: list[bytes] = []
    # A process stuck inside the driver does not react even to SIGKILL. Only this thread may then wait without end.
    reader = background_thread(lambda: answer.append(process.communicate()[0]), "tfguard-driver")
    reader.start()
    reader.join(limit_seconds)
    if reader.is_alive():
        with contextlib.suppress(OSError):
            process.kill()
        reader.join(1.0)
        return DriverAnswer(
            f"the driver's library (NVML) did not answer within {limit_seconds:g} s"
        )
    return _answer(answer[0] if answer else b"", process.returncode)


def _answer(output: bytes, returncode: int) -> DriverAnswer:
    for line in reversed(output.splitlines()):  # a library may print text too
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            return _answer_from(json.loads(line))
    how = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
    return DriverAnswer(f"the driver's library (NVML) crashed during a query ({how})")


def _answer_from(line: dict[str, Any]) -> DriverAnswer:
    return DriverAnswer(
        reason=line["reason"] if "nvml_error" in line else None,
        driver_version=line.get("driver_version"),
        cuda_driver_version=line.get("cuda_driver_version"),
        gpus=tuple(DriverGpu(str(d["name"]), d["compute_capability"]) for d in line["devices"]),
        mismatch=line.get("nvml_error") == _VERSION_MISMATCH,
        absent=line.get("nvml_error") == _NO_LIBRARY,
    )


def _pci_drivers(folder: Path) -> Iterator[str | None]:
    for device in sorted(folder.glob("*")):
        is_display = _text(device / "class").startswith(_DISPLAY_CLASS)
        if is_display and _text(device / "vendor").strip() == NVIDIA_VENDOR:
            driver = device / "driver"
            yield driver.resolve().name if driver.exists() else None


def _text(path: Path) -> str:
    try:
        return read_text(str(path))
    except SourceUnavailable:
        return ""
