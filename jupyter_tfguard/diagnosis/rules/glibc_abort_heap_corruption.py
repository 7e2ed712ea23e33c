"""The C library found its heap damaged and ended the process."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule(
    "glibc_abort_heap_corruption",
    needs=("kernel.recording",),
    outranks=("sys_exit", "segfault_native"),
)
def glibc_abort_heap_corruption(seen: Evidence) -> Finding | None:
    text = told(seen, "glibc_abort_heap_corruption")
    if text is None:
        return None
    return text.finding(
        title="Native code damaged its own memory and the C library ended the kernel.",
        short_title="Heap corruption",
        advice=(
            Advice(
                "Suspect native code of one's own, or two libraries that do not fit together.",
                "The damage was done earlier than the line that noticed it; ctypes, Cython, and packages built against another NumPy are usual.",
                "python -m pip check",
            ),
        ),
    )
