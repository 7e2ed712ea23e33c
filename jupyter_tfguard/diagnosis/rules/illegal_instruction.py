"""The processor lacks instructions that a binary was compiled to use: SIGILL, or the refusal that TensorFlow prints."""

from __future__ import annotations

from ..ending import exit_fact, last_words, stack_facts, sure
from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("illegal_instruction", needs=("exit.status",))
def illegal_instruction(seen: Evidence) -> Finding | None:
    text = told(seen, "illegal_instruction")
    if seen.kernel_alive or not (text or seen.first_signal == "SIGILL"):
        return None
    because = text.facts if text else (exit_fact(seen), *stack_facts(seen), *last_words(seen))
    return Finding(
        text.confidence if text else sure(seen),
        title=f"{seen.who} ran a processor instruction that this machine does not have.",
        short_title="Illegal instruction",
        because=because,
        advice=(
            Advice(
                "Use a build for this processor.",
                "Official TensorFlow wheels for x86 need AVX since 1.6; a build from conda-forge or of one's own can do without.",
                "grep -o -m1 -w 'avx2\\|avx' /proc/cpuinfo",
            ),
        ),
        chips=text.chips if text else (seen.first_signal or "",),
    )
