"""A check of TensorFlow, XLA or another native library failed for a reason of its own, and it gave up."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("tf_check_failed", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def tf_check_failed(seen: Evidence) -> Finding | None:
    text = told(seen, "tf_check_failed")
    if text is None:
        return None
    return text.finding(
        title="A native library gave up with a fatal error.",
        short_title="Fatal error in native code",
        advice=(
            Advice(
                "Read the fatal line: it names what the library did not accept.", text.message[:300]
            ),
        ),
    )
