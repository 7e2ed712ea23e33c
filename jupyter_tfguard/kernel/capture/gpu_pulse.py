"""Samples GPU memory in the kernel: TensorFlow's allocators once a second, and what its log says about each device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...record.events import Emit, GpuDevice
from ...shield import note_problem
from ...training.gpu_memory import DeviceMemory, GpuAllocators, created_devices

_EVERY_SECONDS = 1.0
_READS_OF_LOG = (
    30  # log lines about new devices go through a pipe and may arrive after the devices exist
)


class GpuPulse:
    """Reads TensorFlow's allocators once a second; does nothing while TensorFlow has created no GPU device.

    Args:
        allocators: The allocators to read.
        on_sample: Called with each reading.
        write: Stores a reading; called only if it has changed.
        native_text: The stderr tail: TensorFlow logs a line about each device just before it creates it.
        emit: Writes an event to the journal.
    """

    def __init__(
        self,
        allocators: GpuAllocators,
        on_sample: Callable[[tuple[DeviceMemory, ...]], None],
        write: Callable[[list[dict[str, Any]]], None],
        native_text: Callable[[], str],
        emit: Emit,
    ) -> None:
        self._allocators = allocators
        self._on_sample = on_sample
        self._write = write
        self._native_text = native_text
        self._emit = emit
        self._devices: tuple[str, ...] = ()
        self._reads_left = 0
        self._reported: list[dict[str, Any]] = []
        self._written: tuple[DeviceMemory, ...] | None = None
        self._due = 0.0
        self._failed = False

    def tick(self) -> None:
        """Called with every sample, by one thread. Never raises: after a failure it notes the problem and stays off."""
        if self._failed:
            return
        try:
            devices = self._allocators.devices()
            if devices and time.monotonic() >= self._due:
                self._due = time.monotonic() + _EVERY_SECONDS
                if devices != self._devices:
                    self._devices, self._reads_left = devices, _READS_OF_LOG
                if self._reads_left:
                    self._reads_left -= 1
                    self._report_devices(devices)
                self._read()
        except Exception as error:
            self._failed = True
            note_problem("reading TensorFlow's GPU memory", error)

    def _report_devices(self, devices: tuple[str, ...]) -> None:
        for device in created_devices(self._native_text()):
            if device["device"] in devices and device not in self._reported:
                self._reported.append(device)
                self._emit(GpuDevice(**device))
        if {device["device"] for device in self._reported}.issuperset(devices):
            self._reads_left = 0

    def _read(self) -> None:
        found = self._allocators.read()
        if not found:
            return
        self._on_sample(found)
        if found != self._written:
            self._written = found
            self._write([one._asdict() for one in found])
