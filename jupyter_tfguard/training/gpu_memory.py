"""Reads TensorFlow's GPU allocators, once TensorFlow has created its GPU devices itself.

Reads them directly from the existing context with ``TFE_GetMemoryInfo``, the only call that creates neither a context
nor a device (``tf.config.experimental.get_memory_info`` would create them). The CPU allocator is never read: its
numbers count only tensors of 256 KiB and more, are 0 until the first one, and do not exist without oneDNN.

Source: ``tensorflow.python.eager.context``, verified with TensorFlow 2.15 to 2.21. The limit, name and bus id of a
device appear only in TensorFlow's log.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..record.own_descriptors import unread_bytes
from ..shield import note_problem
from .gpu_settings import CONTEXT_MODULE, eager_context

# A device of this process. In a cluster names begin with a job and include devices of other processes, which have no
# allocator here.
_LOCAL_DEVICE = re.compile(r"/device:(GPU:\d{1,3})")
_MIB = 1024 * 1024
# I0000 00:00:1762253213.310854  475186 gpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/device:GPU:0 with
#   8056 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3080, pci bus id: 0000:0b:00.0, compute capability: 8.6
_CREATED = re.compile(
    r"Created device /job:localhost/replica:0/task:0/device:(?P<device>GPU:\d{1,3}) with (?P<limit>\d{1,9}) MB memory: "
    r" {1,4}-> device: \d{1,4}, name: [^\n,]{1,100}, "
    r"pci bus id: (?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])"
)
_DEVICES_LIMIT = 8


class DeviceMemory(NamedTuple):
    """A reading of one allocator.

    Attributes:
        device: TensorFlow's name for the device, such as ``GPU:0``.
        in_use_bytes: Bytes in live tensors.
        peak_bytes: Peak of `in_use_bytes` since the device was created, or since the user reset it.
    """

    device: str
    in_use_bytes: int
    peak_bytes: int


class GpuAllocators:
    """Reads the allocators of the GPU devices that TensorFlow has created in this process."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def read(self) -> tuple[DeviceMemory, ...] | None:
        """A reading of each device, in TensorFlow's order; None if TensorFlow has created no GPU device here.

        After an error a device is not read again. No device is read while native text waits for its reader.
        """
        module = sys.modules.get(CONTEXT_MODULE)
        # A local reference keeps the handle alive during the call, and no longer.
        handle = getattr(eager_context(), "_context_handle", None)
        devices = self.devices()
        if handle is None or not devices:
            return None
        found: list[DeviceMemory] = []
        for device in devices:
            if device in self._refused:
                continue
            try:
                with _nonblocking_stderr() as may_read:
                    if not may_read:
                        return ()
                    answer = module.pywrap_tfe.TFE_GetMemoryInfo(handle, device)  # type: ignore[union-attr]
                found.append(DeviceMemory(device, int(answer["current"]), int(answer["peak"])))
            except Exception as bad:
                self._refused.add(device)
                note_problem(f"memory of TensorFlow's {device}", bad)
        return tuple(found)

    def devices(self) -> tuple[str, ...]:
        """Names of the GPU devices created so far; empty before. Does not call TensorFlow."""
        context = eager_context()
        # TensorFlow sets this flag last, after all other attributes.
        if getattr(context, "_initialized", False) is not True:
            return ()
        logical = getattr(context, "_logical_devices", None) or ()
        names = [str(d.name) for d in logical if d.device_type == "GPU"]
        found = [match[1] for name in names if (match := _LOCAL_DEVICE.fullmatch(name))]
        return tuple(found[:_DEVICES_LIMIT])


@contextlib.contextmanager
def _nonblocking_stderr() -> Iterator[bool]:
    """Make writes to stderr non-blocking for the duration; yields False if unread text is already in the pipe.

    An allocator that runs out of memory logs a long text while it holds its lock. If stderr is a pipe that a thread of
    this process reads (a thread of the guard or of ipykernel), that thread needs the GIL, but our call would hold the
    GIL while it waits for the lock: a deadlock. With non-blocking writes, text that does not fit into the pipe is lost
    instead.
    """
    try:
        stderr = os.dup(2)
    except OSError:
        yield True  # closed
        return
    try:
        mode = os.fstat(stderr).st_mode
        if not stat.S_ISFIFO(mode):
            yield not stat.S_ISSOCK(mode)
        elif unread_bytes(stderr):
            yield False
        elif not os.get_blocking(stderr):
            yield True
        else:
            os.set_blocking(stderr, False)
            try:
                yield True
            finally:
                os.set_blocking(stderr, True)
    finally:
        os.close(stderr)


def created_devices(native_text: str) -> list[dict[str, Any]]:
    """``device``, ``limit_bytes`` (exact to 1 MiB) and ``bus_id`` by device, from the newest line in the log."""
    found = {
        line["device"]: {
            "device": line["device"],
            "limit_bytes": int(line["limit"]) * _MIB,
            "bus_id": line["bus"].lower(),
        }
        for line in _CREATED.finditer(native_text)
    }
    return list(found.values())[:_DEVICES_LIMIT]
