"""The program used up the memory of the GPU, in a way that TensorFlow could not turn into an exception."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("gpu_oom", needs=("kernel.recording", "gpu"), outranks=("sys_exit", "segfault_native"))
def gpu_oom(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "gpu_oom":
        return None
    return Finding(
        Confidence.LIKELY,
        title="The memory of the GPU ran out, and TensorFlow gave up.",
        short_title="GPU memory ran out",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Use a smaller batch, or a smaller model.",
                "Each layer's outputs are kept for the whole batch.",
            ),
            Advice("See who else holds memory on this card.", "", "nvidia-smi"),
        ),
        chips=ending_chips(seen),
    )
