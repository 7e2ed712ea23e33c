"""A process was forked after threads or CUDA had started in it, or threads wait on each other."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule(
    "fork_or_thread_deadlock",
    needs=("kernel.recording",),
    outranks=("tf_check_failed", "segfault_native", "sys_exit"),
)
def fork_or_thread_deadlock(seen: Evidence) -> Finding | None:
    text = told(seen, "fork_or_thread_deadlock")
    if text is None:
        return None
    return text.finding(
        title="A process was forked after TensorFlow, CUDA or other threads had started in it.",
        short_title="Fork after threads had started",
        advice=(
            Advice(
                "Start worker processes with spawn instead of fork.",
                "A forked child has one thread and the locks of all others; CUDA cannot be used in it at all. "
                "Functions for the workers belong into a module, not into a cell.",
                "multiprocessing.set_start_method('spawn')",
            ),
            Advice("Or start the workers before TensorFlow is imported."),
        ),
    )
