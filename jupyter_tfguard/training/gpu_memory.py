"""What TensorFlow's GPU allocators say of themselves: the view from inside, once TensorFlow made its GPU devices itself.

Asked directly of the context that is there, with the one call that neither makes a context nor a device
(``TFE_GetMemoryInfo``; ``tf.config.experimental.get_memory_info`` would make them). Never asked of a CPU: there the numbers
count tensors of 256 KiB and more only, are 0 until the first one, and without oneDNN there are none.

Source: ``tensorflow.python.eager.context``, seen with TensorFlow 2.15 to 2.21. The limit, name and bus id of a device are
told by TensorFlow's own log only.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..record.own_descriptors import unread_bytes
from ..shield import note_problem
from .gpu_settings import CONTEXT_MODULE, eager_context

# Of this process. In a cluster names begin with a job, and devices of other processes stand among them: they have no
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


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """One allocator now.

    Attributes:
        device: As TensorFlow names it, ``GPU:0``.
        in_use_bytes: Of tensors that are alive.
        peak_bytes: Highest of it since the device was made, or since the user set it back.
    """

    device: str
    in_use_bytes: int
    peak_bytes: int


class GpuAllocators:
    """Asks the allocators of the GPU devices that TensorFlow has made in this process."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def read(self) -> tuple[DeviceMemory, ...] | None:
        """Each device that answers, in TensorFlow's order; None where TensorFlow has made no GPU device here.

        A device that once refused is not asked again, and none is while native text waits for its reader.
        """
        module = sys.modules.get(CONTEXT_MODULE)
        # Held in a name of our own for the time of the call, so that nobody frees it meanwhile; not for longer.
        handle = getattr(eager_context(), "_context_handle", None)
        devices = self.devices()
        if handle is None or not devices:
            return None
        found: list[DeviceMemory] = []
        for device in devices:
            if device in self._refused:
                continue
            try:
                with _no_writer_waits() as may_ask:
                    if not may_ask:
                        return ()
                    told = module.pywrap_tfe.TFE_GetMemoryInfo(handle, device)  # type: ignore[union-attr]
                found.append(DeviceMemory(device, int(told["current"]), int(told["peak"])))
            except Exception as bad:
                self._refused.add(device)
                note_problem(f"memory of TensorFlow's {device}", bad)
        return tuple(found)

    def devices(self) -> tuple[str, ...]:
        """Names of the GPU devices that were made; empty before. Calls nothing of TensorFlow."""
        context = eager_context()
        # The flag is set last, when everything is there.
        if getattr(context, "_initialized", False) is not True:
            return ()
        made = getattr(context, "_logical_devices", None) or ()
        names = [str(d.name) for d in made if d.device_type == "GPU"]
        found = [match[1] for name in names if (match := _LOCAL_DEVICE.fullmatch(name))]
        return tuple(found[:_DEVICES_LIMIT])


@contextlib.contextmanager
def _no_writer_waits() -> Iterator[bool]:
    """For a moment nobody waits who writes to stderr; False when text waits there already, and the moment is bad.

    An allocator that runs out of memory logs a long text while it holds its lock. Where stderr is a pipe that a thread of
    this process empties (the guard's, ipykernel's own), that thread needs the GIL, and our question would hold the GIL
    while it waits for the lock: the kernel would hang. So what does not fit into the pipe just then is lost instead.
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
    """``device``, ``limit_bytes`` (exact to 1 MiB) and ``bus_id`` of each device that TensorFlow logged; the latest of each."""
    found = {
        line["device"]: {
            "device": line["device"],
            "limit_bytes": int(line["limit"]) * _MIB,
            "bus_id": line["bus"].lower(),
        }
        for line in _CREATED.finditer(native_text)
    }
    return list(found.values())[:_DEVICES_LIMIT]
