"""Memory growth of TensorFlow's GPU allocator: sets it in the environment, and reports the state in effect.

TensorFlow reads ``TF_FORCE_GPU_ALLOW_GROWTH`` once, when it creates its GPU devices. Except for the cap, nothing here
calls TensorFlow: a call would create them. If the variable is "true" or "false", it overrides set_memory_growth; the
asynchronous allocator has no growth.

Not covered: calls that differ between GPUs (TensorFlow rejects them), logical devices of the CPU, and a variable that
is changed in the cell in which TensorFlow first uses the GPU. ``watch/gpu/gpu_growth.py`` checks from outside whether
growth works.

Source: ``tensorflow/python/eager/context.py`` (``_compute_device_options``), ``gpu_bfc_allocator.cc``
(``GetAllowGrowthValue``), ``gpu_cudamallocasync_allocator.cc``; TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Mapping, MutableMapping
from types import ModuleType
from typing import NamedTuple

from .. import growth_texts as words
from ..places import GROWTH_MARKER_VARIABLE, GROWTH_VARIABLE
from .gpu_cap import GpuCap
from .gpu_settings import GpuSetting, gpu_settings, gpus_initialised

# /dev/dxg is the GPU of WSL2
_GPU_FILES = ("dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*", "dev/dxg")


class GrowthState(NamedTuple):
    """State of memory growth in this kernel.

    Attributes:
        state: ``async`` if the asynchronous allocator manages the memory, ``on``, ``off_by_user``, ``too_late``,
            ``capped``, ``no_gpu`` or ``unknown``. Whether growth is in effect can only be verified from outside.
        text: A short description for the user.
    """

    state: str
    text: str


class _Variables(NamedTuple):
    """The environment variables that TensorFlow reads at its first use of the GPU."""

    growth: str | None
    allocator: str | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> _Variables:
        return cls(environ.get(GROWTH_VARIABLE), environ.get(words.ALLOCATOR_VARIABLE))


# What TensorFlow has read in this process; kept if the guard is unloaded and loaded again.
_read_once: _Variables | None = None


class GrowthSetting:
    """Sets memory growth for this process, unless the user has decided otherwise.

    Args:
        environ: The environment of the process.
        wanted: False if an option disables it.
        limit_mib: The cap per GPU from the options, in MiB; None for no cap.
    """

    def __init__(
        self, environ: MutableMapping[str, str], *, wanted: bool, limit_mib: int | None = None
    ) -> None:
        self._environ = environ
        self._wanted = wanted
        self._cap = GpuCap(limit_mib)
        self._set_here = False
        self._came_late = False

    def set(self) -> None:
        """Set the variable, and a marker that distinguishes our value from the user's."""
        if GROWTH_VARIABLE in self._environ or not self._wanted:
            return
        self._came_late = gpus_initialised()
        if not self._came_late:
            self._environ[GROWTH_VARIABLE] = "true"
            self._environ[GROWTH_MARKER_VARIABLE] = "1"
            self._set_here = True

    def cap(self, tensorflow: ModuleType) -> None:
        """Set the cap if the option is set and there is a GPU. tfguard changes TensorFlow's settings nowhere else.

        Raises:
            Exception: Any exception of TensorFlow.
        """
        if gpu_present() and not gpus_hidden(self._environ):
            self._cap.apply(tensorflow)

    def undo(self) -> None:
        """Undo :meth:`set`, if its values are still there."""
        if self._set_here and self._environ.get(GROWTH_MARKER_VARIABLE) == "1":
            del self._environ[GROWTH_MARKER_VARIABLE]
            if self._environ.get(GROWTH_VARIABLE) == "true":
                del self._environ[GROWTH_VARIABLE]
        self._set_here = False

    def state(self) -> GrowthState:
        """The current state. Reads files, the environment and attributes, and never calls TensorFlow."""
        global _read_once
        if sys.platform == "win32":
            return GrowthState("unknown", "memory growth: not known on Windows")
        if gpus_hidden(self._environ):
            return GrowthState("no_gpu", "CUDA_VISIBLE_DEVICES hides all GPUs")
        read, gpus = _Variables.of(self._environ), gpu_settings()
        # If TensorFlow has found GPUs, its list counts: some boards have other device files.
        if not gpus and not gpu_present():
            kept = "memory growth set; " if read.growth == "true" else ""
            return GrowthState("no_gpu", f"{kept}no NVIDIA GPU found")
        if gpus is not None and not gpus:
            return GrowthState("no_gpu", "TensorFlow uses no GPU, though this machine has one")
        if gpus_initialised():
            read = _read_once = _read_once or read
        found = self._judge(read, gpus or ())
        if self._cap.came_late and found.state not in ("async", "capped"):
            return GrowthState(found.state, f"{found.text}; {words.CAP_LATE}")
        return found

    def _judge(self, read: _Variables, gpus: tuple[GpuSetting, ...]) -> GrowthState:
        if read.allocator == words.ASYNC_ALLOCATOR:
            needs = "" if gpus_initialised() else f"; {words.ASYNC_NEEDS}"
            return GrowthState("async", words.ASYNC + needs)
        grows = read.growth == "true"
        if any(gpu.limit_bytes is not None for gpu in gpus):
            ours, limit = self._cap.configured, self._cap.limit_bytes
            if limit is not None and all(id(gpu.configured) in ours for gpu in gpus):
                return GrowthState("capped", words.capped(limit, grows=grows))
            limits = [(gpu.name, gpu.limit_bytes) for gpu in gpus]
            return GrowthState("capped", words.capped_by_user(limits, grows=grows))
        requested = {gpu.growth for gpu in gpus}
        if grows:
            by_us = self._environ.get(GROWTH_MARKER_VARIABLE) == "1"
            return GrowthState("on", words.against_call(by_us) if False in requested else words.ON)
        if read.growth == "false":
            return GrowthState("off_by_user", words.off_by_variable())
        if requested == {True}:
            return GrowthState("on", words.ON_BY_CALL)
        if read.growth is not None:
            return GrowthState("off_by_user", words.not_understood(read.growth))
        if self._came_late:
            return GrowthState("too_late", words.TOO_LATE)
        if not self._wanted:
            return GrowthState("off_by_user", words.OFF_BY_OPTION)
        return GrowthState("unknown", words.REMOVED)


def gpu_present(root: str = "/") -> bool:
    """True if this system has an NVIDIA GPU. Source: device files; the driver is not called."""
    return any(glob.glob(os.path.join(root, pattern)) for pattern in _GPU_FILES)


def gpus_hidden(environ: Mapping[str, str]) -> bool:
    """True if the environment hides all GPUs."""
    # CUDA stops at the first index it does not know, so a leading -1 hides all.
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    return chosen is not None and (not chosen.strip() or chosen.strip().startswith("-1"))
