"""The GPU is held by another process, service or tenant: the program found next to nothing, or could not begin at all."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule(
    "gpu_oom_other_process",
    needs=("kernel.recording", "gpu"),
    outranks=("gpu_oom", "sys_exit", "segfault_native", "tf_check_failed"),
)
def gpu_oom_other_process(seen: Evidence) -> Finding | None:
    text = told(seen, "gpu_oom_other_process")
    if text is None:
        return None
    return text.finding(
        title="The GPU was held by somebody else: nearly nothing of it was left.",
        short_title="GPU held by another process",
        advice=(
            Advice(
                "See who holds the card, and shut that down.",
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
