"""Unbounded recursion used up the stack: the interpreter says so, or a crash's Python stack is the same few lines over and over.

Not here: a native function that calls itself. It leaves a segmentation fault, and no trace in the Python stack.
"""

from __future__ import annotations

from ..ending import ending_chips, exit_fact, stack_facts
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..python_stacks import endless, own_stacks
from ..rule import rule
from ..told import told


@rule("stack_overflow", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def stack_overflow(seen: Evidence) -> Finding | None:
    text = told(seen, "stack_overflow")
    crashed = seen.first_signal in ("SIGSEGV", "SIGBUS") and not seen.kernel_alive
    if text is None and not (crashed and any(map(endless, own_stacks((seen.fault_lines,))))):
        return None
    repeats = Fact(Source.KERNEL, "The innermost 100 Python frames are the same few lines")
    return Finding(
        text.confidence if text else Confidence.LIKELY,
        title="The code recursed without end and used up the stack.",
        short_title="Stack overflow",
        because=text.facts if text else (exit_fact(seen), repeats, *stack_facts(seen)),
        advice=(
            Advice(
                "Look for a function that calls itself without an end.",
                "Its frames repeat in the Python stack. sys.setrecursionlimit() makes no room on the stack: it takes "
                "away the exception that would have come first.",
            ),
        ),
        chips=text.chips if text else ending_chips(seen),
    )
