"""The GPU is held by another process, service or tenant: the program found next to nothing, or could not begin at all.

Where the text tells only that the memory of the GPU ran out, the map of who holds what decides: another one must have held most
of the card, and this kernel little.
"""

from __future__ import annotations

from ...units import human_bytes
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..gpu_shares import used_cards
from ..gpus import Gpu, GpuProcess
from ..rule import rule
from ..told import told

_MOST_FRACTION = 0.5
_LITTLE_FRACTION = 0.3


@rule(
    "gpu_oom_other_process",
    needs=("kernel.recording", "gpu"),
    outranks=("gpu_oom", "sys_exit", "segfault_native", "tf_check_failed"),
)
def gpu_oom_other_process(seen: Evidence) -> Finding | None:
    text, held = told(seen, "gpu_oom_other_process"), _held_by_another(seen)
    if text is None and held is not None:
        text = told(seen, "gpu_oom")
    if text is None:
        return None
    title = "The GPU was held by somebody else: nearly nothing of it was left."
    facts = text.facts
    if held is not None:
        gpu, process = held
        size = f"{human_bytes(process.used_bytes)} of {human_bytes(gpu.memory_total_bytes)}"
        title = f"{gpu.title} was held by {process.title}: {size}."
        facts = (
            Fact(Source.SERVER, f"{process.title} held {size} on {gpu.title} before the end"),
            *facts,
        )
    return Finding(
        Confidence.LIKELY if seen.pasted is None else text.confidence,
        title=title,
        short_title="GPU held by another process",
        because=facts,
        chips=text.chips,
        advice=(
            Advice(
                _order(held),
                "A notebook keeps its GPU memory until its kernel ends, also when no cell runs.",
                "nvidia-smi",
            ),
            Advice(
                "Or use another card.",
                "Set it before TensorFlow is imported.",
                "CUDA_VISIBLE_DEVICES=1  # in the environment, before the kernel starts",
            ),
            Advice(
                "If the card is in exclusive mode, only one process may use it.",
                "A batch system may have given it to another job.",
                "nvidia-smi --query-gpu=compute_mode --format=csv",
            ),
        ),
    )


def _order(held: tuple[Gpu, GpuProcess] | None) -> str:
    if held is None or held[1].notebook_path is None:
        return "See who holds the card, and shut that down."
    return f"Shut down the kernel of {held[1].notebook_path}, if it is not needed."


def _held_by_another(seen: Evidence) -> tuple[Gpu, GpuProcess] | None:
    """The card that this kernel used, or the only one, and the other process that held most of it; None for none."""
    ours = used_cards(seen) or seen.gpus
    if len(ours) != 1 or (gpu := ours[0]).processes is None or not gpu.memory_total_bytes:
        return None
    kernel_id = seen.identity.get("kernel_id")
    own = sum(p.used_bytes or 0 for p in gpu.processes if p.is_of(seen.pid, kernel_id))
    others = [p for p in gpu.processes if p.used_bytes and not p.is_of(seen.pid, kernel_id)]
    most = max(others, key=lambda process: process.used_bytes or 0, default=None)
    total = gpu.memory_total_bytes
    if (
        most is None
        or (most.used_bytes or 0) < _MOST_FRACTION * total
        or own > _LITTLE_FRACTION * total
    ):
        return None
    return gpu, most
