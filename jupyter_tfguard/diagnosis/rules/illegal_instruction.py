"""The processor lacks instructions that a binary was compiled to use: SIGILL, or the refusal that TensorFlow prints."""

from __future__ import annotations

from ..ending import exit_fact, fatal_facts, fatal_message, last_words, stack_facts, sure
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("illegal_instruction", needs=("exit.status",))
def illegal_instruction(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    named = message is not None and message.cause == "illegal_instruction"
    if seen.kernel_alive or not (named or seen.first_signal == "SIGILL"):
        return None
    because = (exit_fact(seen), *stack_facts(seen), *last_words(seen))
    if named and message is not None:
        because = fatal_facts(seen, message)
    return Finding(
        Confidence.LIKELY if named else sure(seen),
        title="The kernel ran a processor instruction that this machine does not have.",
        short_title="Illegal instruction",
        because=because,
        advice=(
            Advice(
                "Use a build for this processor.",
                "Official TensorFlow wheels for x86 need AVX since 1.6; a build from conda-forge or of one's own can do without.",
                "grep -o -m1 -w 'avx2\\|avx' /proc/cpuinfo",
            ),
        ),
        chips=(seen.first_signal or "abort",),
    )
