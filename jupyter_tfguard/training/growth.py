"""Memory growth of TensorFlow's GPU allocator: set in the environment, and told as it is, not as it was meant.

TensorFlow reads ``TF_FORCE_GPU_ALLOW_GROWTH`` once, when it creates its GPU devices. Nothing here calls TensorFlow: that
would create them. How the state is judged stands in ``growth_state.py``.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from types import ModuleType

from .. import growth_words as words
from ..places import GROWTH_MARKER_VARIABLE, GROWTH_VARIABLE
from .gpu_cap import GpuCap
from .gpu_settings import gpu_settings, gpus_initialised
from .growth_state import Growth, Variables, Wishes, judge

# /dev/dxg is the GPU of WSL2
_GPU_FILES = ("dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*", "dev/dxg")

# What TensorFlow has read in this process: once, whoever asks, and whenever the guard is loaded again.
_read_once: Variables | None = None


class GrowthSetting:
    """Sets memory growth for this process, unless the user has decided otherwise.

    Args:
        environ: The environment of the process.
        wanted: False when an option says not to.
        limit_mib: The cap per GPU that an option asks for; None for none.
        at_start: Gives the environment that the process began with; None where that cannot be known.
    """

    def __init__(
        self,
        environ: MutableMapping[str, str],
        *,
        wanted: bool,
        limit_mib: int | None = None,
        at_start: Callable[[], Mapping[str, str] | None] = lambda: None,
    ) -> None:
        self._environ = environ
        self._wanted = wanted
        self._cap = GpuCap(limit_mib)
        self._at_start = at_start
        self._set_here = False
        self._came_late = False
        self._before: Variables | None = None  # last seen before TensorFlow had its GPUs

    def set(self) -> None:
        """Set the variable, with the marker that tells our value from the user's."""
        late = gpus_initialised()
        if late:
            self._look_back()
        if GROWTH_VARIABLE not in self._environ and self._wanted:
            self._came_late = late
            if not late:
                self._environ[GROWTH_VARIABLE] = "true"
                self._environ[GROWTH_MARKER_VARIABLE] = "1"
                self._set_here = True
        if not late:
            self._before = Variables.of(self._environ)

    def _look_back(self) -> None:
        """TensorFlow has read its variables already: those that the process began with, or some that came later?"""
        global _read_once
        if _read_once is not None:
            return
        began, now = self._at_start(), Variables.of(self._environ)
        if began is None or Variables.of(began) == now:
            _read_once = now
        else:
            self._before = Variables.of(began)

    def cap(self, tensorflow: ModuleType) -> None:
        """Set the cap of the option, if there is one and a GPU: the one call of TensorFlow that tfguard makes.

        Raises:
            Exception: Whatever TensorFlow raises.
        """
        if gpu_present() and not _gpus_hidden(self._environ):
            self._cap.apply(tensorflow)

    def undo(self) -> None:
        """Take back what :meth:`set` did, if it is still there."""
        if self._set_here and self._environ.get(GROWTH_MARKER_VARIABLE) == "1":
            del self._environ[GROWTH_MARKER_VARIABLE]
            if self._environ.get(GROWTH_VARIABLE) == "true":
                del self._environ[GROWTH_VARIABLE]
        self._set_here = False

    def state(self) -> Growth:
        """How it stands now. Asks files, the environment and memory, never TensorFlow itself."""
        global _read_once
        now = Variables.of(self._environ)
        if sys.platform == "win32":
            return Growth("unknown", "memory growth: not known on Windows")
        told = gpu_settings()
        if not told.initialised:
            self._before = now
        if _gpus_hidden(self._environ):
            return Growth("no_gpu", "CUDA_VISIBLE_DEVICES hides all GPUs")
        # TensorFlow knows better where it has looked: some boards have other device files.
        if not told.gpus and not gpu_present():
            kept = "memory growth set; " if now.growth == "true" else ""
            return Growth("no_gpu", f"{kept}no NVIDIA GPU here")
        if not told.initialised:
            return judge(told, now, self._wishes())
        if _read_once is None:
            if self._before is not None and (changed := now.differing(self._before)):
                return Growth("unknown", words.changed_meanwhile(changed))
            _read_once = now
        found = judge(told, _read_once, self._wishes())
        changed = now.differing(_read_once)
        if not changed or found.state == "no_gpu":
            return found
        return Growth(found.state, f"{found.text}; {words.changed_since(changed)}")

    def _wishes(self) -> Wishes:
        return Wishes(
            growth=self._wanted,
            set_by_us=self._environ.get(GROWTH_MARKER_VARIABLE) == "1",
            came_late=self._came_late,
            limit_bytes=self._cap.limit_bytes,
            limited=self._cap.configured,
            limit_late=self._cap.came_late,
        )


def environment_at_start() -> dict[str, str] | None:
    """The environment that this process was started with; None where the system does not tell. Source: /proc/self/environ."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if b"=" in entry)
    return {name: value for name, _, value in pairs}


def gpu_present(root: str = "/") -> bool:
    """True when this system shows an NVIDIA GPU. Source: device files; the driver is not asked."""
    return any(glob.glob(os.path.join(root, pattern)) for pattern in _GPU_FILES)


def _gpus_hidden(environ: Mapping[str, str]) -> bool:
    # CUDA stops at the first index it does not know, so a leading -1 hides all.
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    return chosen is not None and (not chosen.strip() or chosen.strip().startswith("-1"))
