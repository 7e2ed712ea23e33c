"""Shared memory was too small: a bus error, or the refusal that comes before one, with a word about shared memory."""

from __future__ import annotations

from ..ending import exit_fact, stack_facts
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule
from ..shared_memory import shared_memory_words
from ..told import told


@rule("bus_error_shm", needs=("exit.status",), outranks=("segfault_native",))
def bus_error_shm(seen: Evidence) -> Finding | None:
    text = told(seen, "bus_error_shm")
    words = shared_memory_words(seen) if text is None else None
    if (text is None and words is None) or seen.kernel_alive:
        return None
    because = text.facts if text is not None else ()
    if words is not None:
        words = words.strip()[:400]
        because = (exit_fact(seen), Fact(Source.KERNEL, words), *stack_facts(seen))
    return Finding(
        text.confidence if text is not None else Confidence.LIKELY,
        title="Shared memory ran out.",
        short_title="Shared memory too small",
        because=because,
        advice=(
            Advice(
                "Give the container more shared memory.",
                "`df -h /dev/shm` shows its size; containers often get 64 MiB.",
                "docker run --shm-size=2g ...",
            ),
            Advice(
                "Or use fewer worker processes.",
                "Each of them passes its data through shared memory.",
            ),
        ),
        chips=text.chips if text is not None else (seen.first_signal or "",),
    )
