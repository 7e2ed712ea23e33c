"""A limit on processes or threads was hit."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("thread_limit", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def thread_limit(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "thread_limit":
        return None
    return Finding(
        Confidence.LIKELY,
        title="The kernel could not start another thread and gave up.",
        short_title="Thread limit",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Use fewer threads, or raise the limit.",
                "`ulimit -u` and the pids limit of the container bound them.",
                "tf.config.threading.set_inter_op_parallelism_threads(2)  # before the first operation",
            ),
        ),
        chips=ending_chips(seen),
    )
