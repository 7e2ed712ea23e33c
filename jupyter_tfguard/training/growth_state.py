"""How memory growth stands, judged from what TensorFlow was told and from the variables that it read.

In TensorFlow's order: settings that differ between GPUs stop its start; another allocator knows no growth; with logical
devices configured, of whatever kind, what set_memory_growth asked for is dropped; ``TF_FORCE_GPU_ALLOW_GROWTH`` wins over
what is left, if it says "true" or "false".

Source: ``tensorflow/python/eager/context.py`` (``_compute_device_options``), ``gpu_bfc_allocator.cc``
(``GetAllowGrowthValue``), ``gpu_process_state.cc``, ``gpu_cudamallocasync_allocator.cc``; TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import growth_words as words
from ..places import GROWTH_VARIABLE
from .gpu_settings import GpuSettings


@dataclass(frozen=True)
class Growth:
    """State of memory growth in this kernel.

    Attributes:
        state: ``async`` where the memory is not TensorFlow's to grow, ``on``, ``not_in_force``, ``off_by_user``, ``too_late``, ``mixed``, ``capped``, ``no_gpu`` or
            ``unknown``. That it is proven, or is not, only shows from outside.
        text: The same for people, in a few words.
    """

    state: str
    text: str


@dataclass(frozen=True)
class Variables:
    """The variables that decide, as TensorFlow reads them at its first use of the GPU."""

    growth: str | None = None
    allocator: str | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Variables:
        """As they are now."""
        return cls(environ.get(GROWTH_VARIABLE), environ.get(words.ALLOCATOR_VARIABLE))

    def differing(self, other: Variables) -> list[str]:
        """Names of those that have another value there."""
        pairs = (
            (GROWTH_VARIABLE, self.growth, other.growth),
            (words.ALLOCATOR_VARIABLE, self.allocator, other.allocator),
        )
        return [name for name, mine, theirs in pairs if mine != theirs]


@dataclass(frozen=True)
class Wishes:
    """What tfguard was told to do, and did.

    Attributes:
        growth: The option asks for growth.
        set_by_us: The variable is tfguard's.
        came_late: TensorFlow had its GPUs before the variable could be set.
        limit_bytes: The cap of the option where it was set, else None.
        limited: Logical devices that tfguard configured, by their identity.
        limit_late: The cap came too late.
    """

    growth: bool = True
    set_by_us: bool = False
    came_late: bool = False
    limit_bytes: int | None = None
    limited: frozenset[int] = frozenset()
    limit_late: bool = False


def judge(told: GpuSettings, read: Variables, wishes: Wishes) -> Growth:
    """The state, for a process that has an NVIDIA GPU.

    Args:
        told: TensorFlow's settings.
        read: The variables as TensorFlow read them, or would now.
        wishes: What tfguard did.
    """
    if told.listed and not told.gpus:
        if told.others:
            return Growth("no_gpu", "set_visible_devices hides all GPUs from TensorFlow")
        return Growth("no_gpu", "TensorFlow found no GPU, though this machine has one")
    forced = read.growth == "true"
    asked = {gpu.growth for gpu in told.gpus}
    if len(asked) > 1 and not told.logical_devices and not told.initialised:
        calls = [(gpu.name, gpu.growth) for gpu in told.gpus]
        return Growth("mixed", words.mixed(calls, forced=forced))
    if read.allocator == words.ASYNC_ALLOCATOR:
        return _asynchronous(told)
    if read.allocator == words.EACH_ALLOCATOR:
        return Growth("async", words.EACH)
    if any(gpu.limit_bytes is not None for gpu in told.gpus):
        return _capped(told, wishes, forced)
    found = _plain(told, read, wishes)
    return Growth(found.state, f"{found.text}; {words.CAP_LATE}") if wishes.limit_late else found


def _asynchronous(told: GpuSettings) -> Growth:
    more = [] if told.initialised else [words.ASYNC_NEEDS]
    if any(gpu.limit_bytes is not None for gpu in told.gpus):
        more.append(words.ASYNC_NO_CAP)
    return Growth("async", "; ".join([words.ASYNC, *more]))


def _capped(told: GpuSettings, wishes: Wishes, forced: bool) -> Growth:
    if wishes.limit_bytes is not None and all(
        id(g.configured) in wishes.limited for g in told.gpus
    ):
        return Growth("capped", words.capped(wishes.limit_bytes, grows=forced))
    limits = [(gpu.name, gpu.limit_bytes) for gpu in told.gpus]
    return Growth("capped", words.capped_by_user(limits, grows=forced))


def _plain(told: GpuSettings, read: Variables, wishes: Wishes) -> Growth:
    """TensorFlow's own allocator, with nothing in its way."""
    asked = {gpu.growth for gpu in told.gpus if gpu.growth is not None}
    by_call = asked.pop() if len(asked) == 1 else None
    if read.growth == "true":
        return Growth("on", words.against_call(wishes.set_by_us) if by_call is False else words.ON)
    if read.growth == "false":
        return Growth("off_by_user", words.off_by_variable())
    if by_call is True:
        if told.logical_devices:
            return Growth("not_in_force", words.dropped_by_logical_devices())
        return Growth("on", words.ON_BY_CALL)
    if read.growth is not None:
        return Growth("off_by_user", words.not_understood(read.growth))
    if wishes.came_late:
        return Growth("too_late", words.TOO_LATE)
    if not wishes.growth:
        return Growth("off_by_user", words.OFF_BY_OPTION)
    return Growth("unknown", words.REMOVED)
