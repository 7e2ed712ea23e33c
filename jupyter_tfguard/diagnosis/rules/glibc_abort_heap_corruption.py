"""The C library found its heap damaged and ended the process."""

from __future__ import annotations

from ..catalog.native_aborts import heap_abort
from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told

_KINDS = {
    "overwritten": "Something wrote past the end of a block of memory.",
    "freed twice": "One block of memory was freed twice.",
    "foreign pointer": "Something was freed that never came from this allocator: often one library frees what another one allocated.",
    "foreign allocator": "Two allocators share one heap.",
}


@rule(
    "glibc_abort_heap_corruption",
    needs=("kernel.recording",),
    outranks=("sys_exit", "segfault_native"),
)
def glibc_abort_heap_corruption(seen: Evidence) -> Finding | None:
    text = told(seen, "glibc_abort_heap_corruption")
    if text is None:
        return None
    check = heap_abort(text.message)
    kind = _KINDS.get(check.kind, "") if check is not None and check.origin.verified else ""
    late = "The damage was done earlier than the line that noticed it; ctypes, Cython, and packages built against another NumPy are usual."
    return text.finding(
        title="Native code damaged its own memory and the C library ended the kernel.",
        short_title="Heap corruption",
        advice=(
            Advice(
                "Suspect native code of one's own, or two libraries that do not fit together.",
                f"{kind} {late}".strip(),
                "python -m pip check",
            ),
        ),
    )
