"""NVIDIA's GPUs and their display driver: what the OS kernel shows of them, and what the driver's own library says.

The library is asked in a process of its own that is given up after a while (see :mod:`gpu`); no CUDA context is made.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SourceUnavailable
from ..threads import background_thread
from .procfs import read_text

DRIVER_LIBRARY = "libcuda.so.1"  # what programs that use CUDA open
NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"  # the sound and USB parts of a card are devices of their own
OPEN_DRIVERS = ("nouveau", "nova_core", "nova")
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@...)
_MODULE_VERSION = re.compile(r"NVRM version:.*?\s(\d{2,}\.\d+(?:\.\d+)*)\s")
_NO_LIBRARY, _VERSION_MISMATCH = 12, 18  # NVML_ERROR_LIBRARY_NOT_FOUND, _LIB_RM_VERSION_MISMATCH
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class PciGpu:
    """A display device of NVIDIA's on the PCI bus.

    Attributes:
        address: ``0000:01:00.0``.
        driver: The module that drives it: ``nvidia``, ``nouveau``, ``vfio-pci``; None for none.
    """

    address: str
    driver: str | None


@dataclass(frozen=True)
class NvidiaHardware:
    """What the OS kernel shows, without asking any library.

    Attributes:
        gpus: Those on the PCI bus, as far as it is shown here.
        module_version: Version of NVIDIA's module that is loaded into the OS kernel; None when none is.
        open_driver: The open-source module that is loaded: ``nouveau``; None when none is.
        device_files: ``/dev/nvidia0`` and so on.
        is_wsl: The GPU is Windows', reached through ``/dev/dxg``.
    """

    gpus: tuple[PciGpu, ...] = ()
    module_version: str | None = None
    open_driver: str | None = None
    device_files: tuple[str, ...] = ()
    is_wsl: bool = False

    @property
    def is_there(self) -> bool:
        """Whether anything speaks of a GPU of NVIDIA's here. A Windows machine below WSL may have another maker's."""
        return bool(self.gpus or self.module_version or self.device_files or self.is_wsl)


def nvidia_hardware(root: Path) -> NvidiaHardware:
    """What the machine shows whose files lie below `root`."""
    modules = root / "sys" / "module"
    module = _line(modules / "nvidia" / "version")
    if module is None:
        told = _MODULE_VERSION.search(_text(root / "proc/driver/nvidia/version"))
        module = told[1] if told else None
    devices = root / "dev"
    numbered = [f"/dev/{p.name}" for p in devices.glob("nvidia*") if p.name[6:].isdigit()]
    return NvidiaHardware(
        gpus=tuple(_pci_gpus(root / "sys/bus/pci/devices")),
        module_version=module,
        open_driver=next((name for name in OPEN_DRIVERS if (modules / name).is_dir()), None),
        device_files=tuple(sorted(numbered)),
        is_wsl=(devices / "dxg").exists(),
    )


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver tells of it.

    Attributes:
        compute_capability: ``8.6``; None when the driver does not tell.
    """

    name: str
    compute_capability: str | None


@dataclass(frozen=True)
class DriverAnswer:
    """What the driver's library says.

    Attributes:
        reason: Why it says nothing, for people; None when it answered, be it that there are no GPUs.
        mismatch: It refused because the module in the OS kernel is of another version.
        absent: There is no such library here, though others of the driver may be.
    """

    reason: str | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    mismatch: bool = False
    absent: bool = False


def ask_driver(environ: Mapping[str, str], limit_seconds: float) -> DriverAnswer:
    """Ask the driver's library, in a process with these environment variables that is given up after a while."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_tfguard.collectors.gpu", "versions"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            # -m puts the current folder first on the path: not the notebooks', where a file may be called json.py.
            cwd=_PACKAGE_PARENT,
        )
    except OSError as bad:
        return DriverAnswer(f"the process that asks the driver cannot be started: {bad.strerror}")
    answer: list[bytes] = []
    # A process stuck inside the driver does not even take SIGKILL, so this thread may wait for ever; nobody else does.
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
    for line in reversed(output.splitlines()):  # a library may print on its own
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            return _told(json.loads(line))
    how = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
    return DriverAnswer(f"the driver's library (NVML) crashed when it was asked ({how})")


def _told(line: dict[str, Any]) -> DriverAnswer:
    return DriverAnswer(
        reason=line["reason"] if "nvml_error" in line else None,
        driver_version=line.get("driver_version"),
        cuda_driver_version=line.get("cuda_driver_version"),
        gpus=tuple(Gpu(str(d["name"]), d["compute_capability"]) for d in line["devices"]),
        mismatch=line.get("nvml_error") == _VERSION_MISMATCH,
        absent=line.get("nvml_error") == _NO_LIBRARY,
    )


def _pci_gpus(folder: Path) -> list[PciGpu]:
    found = []
    for device in sorted(folder.glob("*")):
        kind = _line(device / "class") or ""
        if _line(device / "vendor") == NVIDIA_VENDOR and kind.startswith(_DISPLAY_CLASS):
            driver = device / "driver"
            found.append(PciGpu(device.name, driver.resolve().name if driver.exists() else None))
    return found


def _text(path: Path) -> str:
    try:
        return read_text(str(path))
    except SourceUnavailable:
        return ""


def _line(path: Path) -> str | None:
    return _text(path).strip() or None
