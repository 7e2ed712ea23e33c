"""Two OpenMP runtimes in one process: the second one refuses to start."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("libiomp_duplicate", needs=("kernel.recording",), outranks=("sys_exit",))
def libiomp_duplicate(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "libiomp_duplicate":
        return None
    return Finding(
        Confidence.LIKELY,
        title="Two OpenMP runtimes were loaded into the kernel, and the second one gave up.",
        short_title="Two OpenMP runtimes",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Install the packages that bring OpenMP from one source.",
                "conda and pip packages (MKL, scikit-learn, PyTorch) often bring a copy each.",
            ),
        ),
        chips=ending_chips(seen),
    )
