"""The C library found its heap damaged and ended the process."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule(
    "glibc_abort_heap_corruption",
    needs=("kernel.recording",),
    outranks=("sys_exit", "segfault_native"),
)
def glibc_abort_heap_corruption(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "glibc_abort_heap_corruption":
        return None
    return Finding(
        Confidence.LIKELY,
        title="Native code damaged its own memory and the C library ended the kernel.",
        short_title="Heap corruption",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Suspect native code of one's own, or two libraries that do not fit together.",
                "The damage was done earlier than the line that noticed it; ctypes, Cython, and packages built against another NumPy are usual.",
                "python -m pip check",
            ),
        ),
        chips=ending_chips(seen),
    )
