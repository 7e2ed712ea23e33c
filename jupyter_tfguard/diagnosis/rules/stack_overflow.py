"""Unbounded recursion used up the stack."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("stack_overflow", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def stack_overflow(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "stack_overflow":
        return None
    return Finding(
        Confidence.LIKELY,
        title="The code recursed without end and used up the stack.",
        short_title="Stack overflow",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Look for a function that calls itself without an end.",
                "Its frames repeat in the Python stack below.",
            ),
        ),
        chips=ending_chips(seen),
    )
