"""Unbounded recursion used up the stack."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("stack_overflow", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def stack_overflow(seen: Evidence) -> Finding | None:
    text = told(seen, "stack_overflow")
    if text is None:
        return None
    return text.finding(
        title="The code recursed without end and used up the stack.",
        short_title="Stack overflow",
        advice=(
            Advice(
                "Look for a function that calls itself without an end.",
                "Its frames repeat in the Python stack below.",
            ),
        ),
    )
