"""A request for host memory was refused and the program ended by itself, without a kill."""

from __future__ import annotations

from ..ending import told
from ..evidence import Evidence
from ..finding import Finding
from ..memory import peak_chips, peak_fact
from ..memory_advice import memory_advice
from ..rule import rule


@rule("cpu_alloc_failure", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def cpu_alloc_failure(seen: Evidence) -> Finding | None:
    text = told(seen, "cpu_alloc_failure")
    if text is None:
        return None
    peak = peak_fact(seen)
    return Finding(
        text.confidence,
        title="Native code was refused memory and gave up.",
        short_title="Memory request refused",
        because=(*text.facts, *((peak,) if peak else ())),
        advice=memory_advice(seen, seen.limit()),
        chips=(*text.chips, *peak_chips(seen)),
    )
