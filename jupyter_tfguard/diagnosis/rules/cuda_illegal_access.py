"""A fault on the GPU that ends its context: illegal address, launch failure, illegal instruction."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule(
    "cuda_illegal_access",
    needs=("kernel.recording", "gpu"),
    outranks=("sys_exit", "segfault_native"),
)
def cuda_illegal_access(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "cuda_illegal_access":
        return None
    return Finding(
        Confidence.LIKELY,
        title="Work on the GPU failed, and its context could not go on.",
        short_title="GPU fault",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Find the operation that fails.",
                "CUDA reports a fault late; with blocking launches the Python stack names the right line.",
                "CUDA_LAUNCH_BLOCKING=1  # in the environment, before the kernel starts",
            ),
        ),
        chips=ending_chips(seen),
    )
