"""A request for host memory was refused and the program ended by itself, without a kill."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Confidence, Finding
from ..memory import memory_advice, peak_chips, peak_fact
from ..rule import rule


@rule("cpu_alloc_failure", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def cpu_alloc_failure(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "cpu_alloc_failure":
        return None
    peak = peak_fact(seen)
    return Finding(
        Confidence.LIKELY,
        title="Native code was refused memory and gave up.",
        short_title="Memory request refused",
        because=(*fatal_facts(seen, message), *((peak,) if peak else ())),
        advice=memory_advice(seen),
        chips=(*ending_chips(seen), *peak_chips(seen)),
    )
