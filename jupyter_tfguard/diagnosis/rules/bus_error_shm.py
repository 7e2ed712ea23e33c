"""Shared memory was too small: a bus error, or the refusal that comes before one, with a word about shared memory."""

from __future__ import annotations

import re

from ..ending import exit_fact, fatal_message, stack_facts
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule

_SHARED = re.compile(r"shared memory|/dev/shm|\bshm\b", re.IGNORECASE)


@rule("bus_error_shm", needs=("exit.status",), outranks=("segfault_native",))
def bus_error_shm(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    words = message.text if message is not None and message.cause == "bus_error_shm" else None
    if words is None and seen.first_signal == "SIGBUS":
        words = next(
            (line for line in reversed(seen.stderr_lines[-40:]) if _SHARED.search(line)), None
        )
        words = words or next(
            (line for line in seen.fault_lines if "multiprocessing/shared_memory" in line), None
        )
    if words is None or seen.kernel_alive:
        return None
    return Finding(
        Confidence.LIKELY,
        title="Shared memory ran out and the kernel crashed with a bus error.",
        short_title="Shared memory too small",
        because=(exit_fact(seen), Fact(Source.KERNEL, words.strip()[:400]), *stack_facts(seen)),
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
        chips=(seen.first_signal or "abort",),
    )
