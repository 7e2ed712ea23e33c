"""The memory that this kernel holds on a GPU grew steadily, over epochs, fits or runs of a cell.

TensorFlow's pool keeps the most memory that the program needed, so with memory growth it levels off within the first
epochs. If the pool takes the whole card at its start, growth is not visible.
"""

from __future__ import annotations

from ...units import human_bytes
from ..activity import last_fit
from ..evidence import Evidence
from ..finding import Confidence, Finding, Source
from ..gpus import Gpu
from ..leak import Leak, Per, matters, steady_growth
from ..memory_advice import gpu_leak_advice
from ..rule import rule


@rule("gpu_leak", needs=("gpu",))
def gpu_leak(seen: Evidence) -> Finding | None:
    """The memory that the kernel holds on a GPU grew steadily until the end: over epochs, calls of `fit`, or runs of a cell.

    Samples are compared at the same point of each epoch, fit or run. One jump does not count, nor does growth that levels off.
    Nothing can be seen where TensorFlow takes the whole card at its start. The finding appears beside the cause of the end.
    """
    if seen.pasted is not None or seen.kernel_alive:
        return None
    for gpu in seen.gpus:
        curve = gpu.series("own_bytes")
        found = steady_growth(seen, curve, host=False, source=Source.SERVER) if curve else None
        total = gpu.memory_total_bytes
        if found is not None and matters(found, total, _room(gpu), last_fit(seen)):
            return _finding(gpu, found)
    return None


def _room(gpu: Gpu) -> float | None:
    total = gpu.memory_total_bytes
    used = gpu.series("memory_used_bytes") or gpu.series("own_bytes")
    return None if total is None or not used else max(0.0, total - used[-1][1])


def _finding(gpu: Gpu, found: Leak) -> Finding:
    room, total = _room(gpu), gpu.memory_total_bytes
    left = None if room is None else found.left(room)
    slope = human_bytes(found.trend.slope)
    outlook = f"; its {human_bytes(total)} would be used up in {left}" if left else ""
    return Finding(
        Confidence.LIKELY if found.per in (Per.EPOCH, Per.FIT) else Confidence.POSSIBLE,
        title=f"The kernel's memory on {gpu.title} grew steadily over {found.over}: {found.rate}{outlook}.",
        short_title=f"GPU memory grew by {slope} {found.per.value}",
        because=(found.fact,),
        advice=gpu_leak_advice(found),
        chips=(f"+{slope} {found.per.value}",),
        beside=True,
        mechanism=f"The kernel's memory on {gpu.title} grew by {slope} {found.per.value}",
    )
