"""Memory growth of TensorFlow's GPU allocator: set in the environment, and told as it is, not as it was meant.

TensorFlow reads ``TF_FORCE_GPU_ALLOW_GROWTH`` when it creates its GPU devices, and knows the words "true" and "false" only;
the variable wins over ``set_memory_growth`` calls. Nothing here calls TensorFlow: that would create the devices.

Source of the state of TensorFlow: ``tensorflow.python.eager.context``, seen with TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass

from ..places import GROWTH_MARKER_VARIABLE, GROWTH_VARIABLE

_CONTEXT_MODULE = "tensorflow.python.eager.context"
# /dev/dxg is the GPU of WSL2
_GPU_FILES = ("dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*", "dev/dxg")
TOO_LATE_FIX = "restart the kernel and load tfguard before TensorFlow"


@dataclass(frozen=True)
class Growth:
    """State of memory growth in this kernel.

    Attributes:
        state: ``on``, ``off_by_user``, ``too_late``, ``no_gpu`` or ``unknown``.
        text: The same for people, in a few words.
    """

    state: str
    text: str


class GrowthSetting:
    """Sets memory growth for this process, unless the user has decided otherwise.

    Args:
        environ: The environment of the process.
        wanted: False when an option says not to.
    """

    def __init__(self, environ: MutableMapping[str, str], *, wanted: bool) -> None:
        self._environ = environ
        self._wanted = wanted
        self._set_here = False
        self._came_late = False

    def set(self) -> None:
        """Set the variable, with the marker that tells our value from the user's."""
        if GROWTH_VARIABLE in self._environ or not self._wanted:
            return
        if gpus_initialised():
            self._came_late = True
            return
        self._environ[GROWTH_VARIABLE] = "true"
        self._environ[GROWTH_MARKER_VARIABLE] = "1"
        self._set_here = True

    def undo(self) -> None:
        """Take back what :meth:`set` did, if it is still there."""
        if self._set_here and self._environ.get(GROWTH_MARKER_VARIABLE) == "1":
            del self._environ[GROWTH_MARKER_VARIABLE]
            if self._environ.get(GROWTH_VARIABLE) == "true":
                del self._environ[GROWTH_VARIABLE]
        self._set_here = False

    @property
    def came_late(self) -> bool:
        """True when TensorFlow had its GPUs before the variable could be set, and there are some."""
        return self._came_late and gpu_present() and not _gpus_hidden(self._environ)

    def state(self) -> Growth:
        """How it stands now. Asks files, the environment and memory, never TensorFlow itself."""
        value = self._environ.get(GROWTH_VARIABLE)
        ours = self._environ.get(GROWTH_MARKER_VARIABLE) == "1"
        if sys.platform == "win32":
            return Growth("unknown", "memory growth: not known on Windows")
        if _gpus_hidden(self._environ):
            return Growth("no_gpu", "CUDA_VISIBLE_DEVICES hides all GPUs")
        if not gpu_present():
            kept = "memory growth set; " if value == "true" else ""
            return Growth("no_gpu", f"{kept}no NVIDIA GPU here")
        asked = _asked_of_tensorflow()
        if self._came_late and asked is not True:
            return Growth("too_late", f"too late for memory growth: {TOO_LATE_FIX}")
        if value == "true":
            if asked is False:
                return Growth("on", _contrary_text(ours))
            return Growth("on", "memory growth on")
        if value == "false":
            return Growth("off_by_user", f"memory growth off: {GROWTH_VARIABLE}=false is yours")
        if value is not None:
            return Growth(
                "off_by_user",
                f"memory growth not forced: TensorFlow does not understand {GROWTH_VARIABLE}={value[:20]!r}, only true",
            )
        if asked is True:
            return Growth("on", "memory growth on, by your own call")
        if not self._wanted:
            return Growth("off_by_user", "memory growth off: TfGuard.set_memory_growth is False")
        return Growth("unknown", f"memory growth unknown: {GROWTH_VARIABLE} was removed")


def _contrary_text(ours: bool) -> str:
    if ours:
        return (
            "memory growth on: tfguard's variable wins over your set_memory_growth(False); "
            "TfGuard.set_memory_growth = False switches it off"
        )
    return f"memory growth on: {GROWTH_VARIABLE}=true wins over your set_memory_growth(False)"


def gpu_present(root: str = "/") -> bool:
    """True when this system shows an NVIDIA GPU. Source: device files; the driver is not asked."""
    return any(glob.glob(os.path.join(root, pattern)) for pattern in _GPU_FILES)


def _gpus_hidden(environ: MutableMapping[str, str]) -> bool:
    # CUDA stops at the first index it does not know, so a leading -1 hides all.
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    return chosen is not None and (not chosen.strip() or chosen.strip().startswith("-1"))


def gpus_initialised() -> bool:
    """True when TensorFlow has created its devices in this process."""
    context = getattr(sys.modules.get(_CONTEXT_MODULE), "_context", None)
    return getattr(context, "_context_handle", None) is not None


def _asked_of_tensorflow() -> bool | None:
    """What the user's own set_memory_growth calls ask for; None when there were none, or they differ."""
    context = getattr(sys.modules.get(_CONTEXT_MODULE), "_context", None)
    asked = getattr(context, "_memory_growth_map", None)
    if not isinstance(asked, dict):
        return None
    # Once one GPU was set, the map holds all of them; None stands for those not spoken of.
    values = {value for value in asked.values() if value is not None}
    return values.pop() if len(values) == 1 else None
