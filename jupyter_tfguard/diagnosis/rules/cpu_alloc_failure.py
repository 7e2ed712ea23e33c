"""A request for host memory was refused and the program ended itself, without a kill."""

from __future__ import annotations

from ...units import human_bytes
from ..ending import text_evidence
from ..evidence import Evidence
from ..finding import Finding
from ..line_sizes import named_bytes
from ..memory import peak_chips, peak_fact
from ..memory_advice import memory_advice
from ..rule import rule


@rule("cpu_alloc_failure", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def cpu_alloc_failure(seen: Evidence) -> Finding | None:
    """The program asked for memory of the machine, and the request was refused. The program then ended by itself.

    A line of the stderr tail or of the log says so, for example `std::bad_alloc`. Nothing after that line shows that the
    program went on.
    """
    text = text_evidence(seen, "cpu_alloc_failure")
    if text is None:
        return None
    peak, size = peak_fact(seen), named_bytes(text.details, "size")
    what = f"A request for {human_bytes(size)} of memory" if size else "A request for memory"
    return Finding(
        text.confidence,
        title=f"{what} was refused, and the program did not handle it.",
        short_title="Memory allocation failed",
        because=(*text.facts, *((peak,) if peak else ())),
        advice=memory_advice(seen, seen.limit()),
        chips=(*text.chips, *peak_chips(seen)),
    )
