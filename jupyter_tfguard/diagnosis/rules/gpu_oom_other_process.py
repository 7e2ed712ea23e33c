"""Another process, service or tenant uses the GPU: the program found almost no free memory, or could not start at all.

If the text shows only that GPU memory ran out, the list of processes decides: others must have held most of the card, and
this kernel little.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ...units import human_bytes
from ..ending import TextEvidence, text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..gpu_shares import share_facts, used_cards
from ..gpus import Gpu, GpuProcess
from ..rule import rule

_MOST_FRACTION = 0.5
_LITTLE_FRACTION = 0.3
_SHARE_FRACTION = 0.45
_TOGETHER = 3  # nvidia-smi lists any others, which hold little


@rule(
    "gpu_oom_other_process",
    needs=("kernel.recording", "gpu"),
    outranks=("gpu_oom", "sys_exit", "segfault_native", "tf_check_failed"),
)
def gpu_oom_other_process(seen: Evidence) -> Finding | None:
    """The GPU was nearly full before this program needed it. Another notebook, service or user held the memory.

    A message says that the card is in use, or had almost nothing free at the start. Or the GPU ran out of memory while others
    held at least half of the card and this kernel held 30 % at most.
    """
    text, held = text_evidence(seen, "gpu_oom_other_process"), _held_by_another(seen)
    if text is None and held is not None:
        text = text_evidence(seen, "gpu_oom")
    if text is None:
        return None
    if "TPU" in text.message or "tpu_device" in text.details:
        return _of_tpu(text)
    title = "Another process held the GPU's memory, and almost nothing was left."
    facts = text.facts
    if held is not None:
        total = human_bytes(held.gpu.memory_total_bytes)
        sizes = [f"{human_bytes(p.used_bytes)} of {total}" for p in held.most]
        parts = [f"{p.title}, {size}" for p, size in zip(held.most, sizes, strict=True)]
        who = "Another process" if len(parts) == 1 else "Other processes"
        title = f"{who} held the memory of {held.gpu.title}: {'; '.join(parts)}."
        seen_facts = [
            Fact(Source.SERVER, f"{p.title} held {size} on {held.gpu.title} before the end")
            for p, size in zip(held.most, sizes, strict=True)
        ]
        # If this kernel was observed on the card too, one sentence covers both.
        facts = (*(share_facts(seen) or seen_facts), *facts)
    return Finding(
        Confidence.LIKELY if seen.pasted is None else text.confidence,
        title=title,
        short_title="GPU held by another process",
        because=facts,
        chips=text.chips,
        advice=_advice(seen, held),
    )


def _of_tpu(text: TextEvidence) -> Finding:
    """A TPU has one user at a time; nvidia-smi does not know it."""
    pid = text.details.get("tpu_holder")
    who = f"process {pid}" if pid else "the process that uses the TPU"
    stop = Advice(
        f"Stop {who}, or shut down its kernel.",
        "Only one process can use a TPU. A notebook keeps it until its kernel ends, even when no cell runs.",
        f"ps -o pid,etime,cmd -p {pid}" if pid else "sudo lsof -w /dev/accel0",
    )
    return text.finding(
        title=f"Another process{f' ({pid})' if pid else ''} uses the TPU.",
        short_title="TPU held by another process",
        advice=(stop,),
    )


def _advice(seen: Evidence, held: _Held | None) -> tuple[Advice, ...]:
    notebooks = [p.notebook_path for p in held.most if p.notebook_path] if held else []
    keeps = "A notebook keeps its GPU memory until its kernel ends, even when no cell runs."
    if notebooks:
        first = Advice(f"Shut down the kernel of {notebooks[0]}, if it is not needed.", keeps)
    else:
        first = Advice(
            "Find the process that holds the card's memory and stop it.", keeps, "nvidia-smi"
        )
    found = [first]
    whole = [gpu for gpu in seen.gpus if gpu.mig_index is None]
    if len(whole) != 1:
        free = next((gpu for gpu in whole if gpu.processes == () and not gpu.lost), None)
        index = 1 if free is None or free.index is None else free.index
        found.append(
            Advice(
                "Or use another card."
                if free is None
                else f"Or use {free.title}: no process used it.",
                "Set this before the program starts. nvidia-smi numbers the cards by PCI bus; CUDA may number them differently.",
                f"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={index}  # in the environment, before the kernel starts",
            )
        )
    if held is not None and notebooks:
        found.append(
            Advice(
                "Or let both notebooks share the card.",
                "Memory growth alone does not limit them; set a limit for each. Write it into jupyter_tfguard_config.json "
                "in your Jupyter configuration folder, and restart both kernels.",
                f'{{"TfGuard": {{"gpu_memory_limit_mib": {_half_mib(held)}}}}}',
            )
        )
    if held is None:
        found.append(
            Advice(
                "If the card is in exclusive mode, only one process may use it.",
                "A batch system may have given it to another job.",
                "nvidia-smi --query-gpu=compute_mode --format=csv",
            )
        )
    return tuple(found)


def _half_mib(held: _Held) -> int:
    """A memory limit for one of two processes, less what CUDA and the driver use outside TensorFlow's pool."""
    return int(_SHARE_FRACTION * (held.gpu.memory_total_bytes or 0)) >> 20


@dataclass(frozen=True)
class _Held:
    """A card, and the other processes that held most of it, largest first."""

    gpu: Gpu
    most: tuple[GpuProcess, ...]


def _held_by_another(seen: Evidence) -> _Held | None:
    """The card that this kernel used, or the only card, and the other processes that held most of it; None for none."""
    ours = used_cards(seen) or seen.gpus
    if len(ours) != 1 or (gpu := ours[0]).processes is None or not gpu.memory_total_bytes:
        return None
    kernel_id, total = seen.identity.get("kernel_id"), gpu.memory_total_bytes
    own = sum(p.used_bytes or 0 for p in gpu.processes if p.is_of(seen.pid, kernel_id))
    others = [p for p in gpu.processes if p.used_bytes and not p.is_of(seen.pid, kernel_id)]
    others.sort(key=lambda process: -(process.used_bytes or 0))
    if own > _LITTLE_FRACTION * total:
        return None
    sums = itertools.accumulate(p.used_bytes or 0 for p in others[:_TOGETHER])
    enough = next((n for n, size in enumerate(sums, 1) if size >= _MOST_FRACTION * total), None)
    return None if enough is None else _Held(gpu, tuple(others[:enough]))
