"""A limit on processes or threads was hit."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("thread_limit", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def thread_limit(seen: Evidence) -> Finding | None:
    text = told(seen, "thread_limit")
    if text is None:
        return None
    return text.finding(
        title="The kernel could not start another thread and gave up.",
        short_title="Thread limit",
        advice=(
            Advice(
                "Use fewer threads, or raise the limit.",
                "`ulimit -u` and the pids limit of the container bound them.",
                "tf.config.threading.set_inter_op_parallelism_threads(2)  # before the first operation",
            ),
        ),
    )
