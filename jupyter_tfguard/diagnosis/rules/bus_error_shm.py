"""Shared memory was too small: a bus error, or the refusal that comes before one, with a word about shared memory."""

from __future__ import annotations

import re

from ..ending import exit_fact, stack_facts
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule
from ..text_age import native_text_is_old
from ..told import told

# Python's resource tracker, after its owner's death:
# UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown
_SHARED = re.compile(r"shared[ _]memory|/dev/shm|\bshm\b", re.IGNORECASE)


@rule("bus_error_shm", needs=("exit.status",), outranks=("segfault_native",))
def bus_error_shm(seen: Evidence) -> Finding | None:
    text, words = told(seen, "bus_error_shm"), None
    if text is None and seen.first_signal == "SIGBUS" and not native_text_is_old(seen):
        words = next(
            (line for line in reversed(seen.stderr_lines[-40:]) if _SHARED.search(line)), None
        )
        words = words or next(
            (line for line in seen.fault_lines if "multiprocessing/shared_memory" in line), None
        )
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
