"""A process was forked after threads or CUDA had started in it, or threads wait on each other."""

from __future__ import annotations

from ...units import human_seconds
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule
from ..told import told

_SHORT_TITLE = "Fork after threads had started"
_ADVICE = (
    Advice(
        "Start worker processes with spawn instead of fork.",
        "A forked child has one thread and the locks of all others; CUDA cannot be used in it at all. "
        "Functions for the workers belong into a module, not into a cell.",
        "multiprocessing.set_start_method('spawn')",
    ),
    Advice("Or start the workers before TensorFlow is imported."),
)


@rule(
    "fork_or_thread_deadlock",
    needs=("kernel.recording",),
    outranks=("hang", "tf_check_failed", "segfault_native", "sys_exit"),
)
def fork_or_thread_deadlock(seen: Evidence) -> Finding | None:
    text = told(seen, "fork_or_thread_deadlock")
    if text is not None:
        return text.finding(
            title="A process was forked after TensorFlow, CUDA or other threads had started in it.",
            short_title=_SHORT_TITLE,
            advice=_ADVICE,
        )
    stuck = seen.hang
    if stuck is None or stuck.forked_too_late is None or seen.kernel_alive:
        return None
    return Finding(
        Confidence.LIKELY,
        title="A child process that was forked after TensorFlow had started hangs, and the kernel waits for it.",
        short_title=_SHORT_TITLE,
        because=stuck.facts,
        advice=_ADVICE,
        chips=(f"{human_seconds(stuck.seconds)} without progress",),
    )
