"""Deaths of many different native kinds, one after the other: failing memory, power or overclocking is one reason for that.

A fault of one program dies the same way each time, or in two related ways; a machine that flips bits kills by whatever they
hit. Ends that somebody asked for, kills, and ends for want of memory or disk say nothing of this kind, and different notebooks
may have a fault each, so the kinds must differ within one notebook.
"""

from __future__ import annotations

from ...units import human_seconds
from ..earlier import same_notebook
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source, quoted
from ..os_log import CORRECTED, MEMORY
from ..rule import rule

_FEWEST_KINDS = 3
_WITHIN_SECONDS = 86400.0
_NATIVE = (
    "bus_error_shm",
    "cuda_illegal_access",
    "glibc_abort_heap_corruption",
    "gpu_hardware_xid",
    "hardware_error",
    "segfault_native",
    "tf_check_failed",
)  # fmt: skip
# Ends without a cause of their own are told apart by these.
_SIGNALS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")


@rule("mixed_deaths", needs=("earlier_deaths", "system_log"), last=True)
def mixed_deaths(seen: Evidence) -> Finding | None:
    if seen.kernel_alive or seen.cause is None:
        return None
    now = _kind(seen.cause, seen.first_signal)
    if now is None:
        return None
    kinds = {now: seen.died}
    for death in seen.earlier_deaths:
        kind = _kind(death.cause, death.signal)
        if (
            kind is not None
            and same_notebook(seen, death)
            and seen.died - death.died < _WITHIN_SECONDS
        ):
            kinds.setdefault(kind, death.died)
    if len(kinds) < _FEWEST_KINDS:
        return None
    corrected = [f for f in seen.system_log.faults if f.about == MEMORY and f.weight == CORRECTED]
    span = human_seconds(max(1.0, seen.died - min(kinds.values())))
    logged = tuple(quoted(f"The system log says that {f.says}", f.line) for f in corrected[:2])
    one_library = "One native library that overwrites memory of others dies in several ways too"
    return Finding(
        Confidence.LIKELY if corrected else Confidence.POSSIBLE,
        title=f"This notebook died in {len(kinds)} different native ways in {span}: failing memory, power or overclocking may be behind it.",
        short_title=f"{len(kinds)} kinds of native death",
        because=(Fact(Source.SERVER, f"Within {span}: {', '.join(reversed(kinds))}"), *logged),
        against=(Fact(Source.SERVER, one_library),),
        advice=(
            Advice(
                "Run another program that works hard, and the same notebook on another machine.",
                "What dies here in many ways and runs there points at this machine; what dies there too, at the code or a package.",
            ),
            Advice(
                "Test the memory, and take back overclocking and memory profiles (XMP, EXPO).",
                "A power supply that is too weak for the card shows the same way, under load only.",
            ),
        ),
        beside=True,
    )


def _kind(cause: str, signal: str | None) -> str | None:
    if cause in _NATIVE:
        return cause
    if cause == "illegal_instruction":
        return (
            cause if signal == "SIGILL" else None
        )  # a binary that needs another processor dies at its import
    return signal if cause == "unknown" and signal in _SIGNALS else None
