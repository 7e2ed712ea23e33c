"""A check of TensorFlow, XLA or another native library failed for a reason of its own, and it gave up."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("tf_check_failed", needs=("kernel.recording",), outranks=("sys_exit", "segfault_native"))
def tf_check_failed(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "tf_check_failed":
        return None
    return Finding(
        Confidence.LIKELY,
        title="A native library gave up with a fatal error.",
        short_title="Fatal error in native code",
        because=fatal_facts(seen, message),
        advice=(
            Advice(
                "Read the fatal line: it names what the library did not accept.", message.text[:300]
            ),
        ),
        chips=ending_chips(seen),
    )
