"""Storage failed under the program: a disk, its link, a file system or a file server. A full disk is ``disk_full``.

A bus error is the operating system's answer when a page of a mapped file cannot be read; so a failing disk shows as SIGBUS. An
I/O error in the log that goes with no such end may belong to any disk and any program, and counts for nothing.
"""

from __future__ import annotations

import re

from ..ending import ending_chips, exit_fact, stack_facts
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, quoted
from ..os_log import STORAGE, OsFault
from ..rule import rule
from ..shared_memory import shared_memory_words
from ..told import told

# CD and floppy drives: empty ones of virtual machines fail at each look.
_REMOVABLE = re.compile(r"(?:sr|scd|fd)\d")


@rule(
    "io_error",
    needs=("exit.status", "system_log"),
    outranks=("segfault_native", "sys_exit", "tf_check_failed"),
)
def io_error(seen: Evidence) -> Finding | None:
    text = told(seen, "io_error")
    fault = next((fault for fault in seen.system_log.faults if _may_hold_files(fault)), None)
    if text is not None:
        facts = (*text.facts, *((_log_fact(fault),) if fault else ()))
        return _finding(text.confidence, fault, facts, text.chips, text.message)
    if (
        fault is None
        or seen.pasted is not None
        or seen.kernel_alive
        or seen.first_signal != "SIGBUS"
    ):
        return None
    facts = (exit_fact(seen), _log_fact(fault), *stack_facts(seen))
    confidence = Confidence.LIKELY
    if told(seen, "bus_error_shm") is not None or shared_memory_words(seen) is not None:
        confidence = Confidence.POSSIBLE  # the program's own word goes before a disk's, of whomever
    return _finding(confidence, fault, facts, ending_chips(seen), "")


def _may_hold_files(fault: OsFault) -> bool:
    return fault.about == STORAGE and not _REMOVABLE.match(fault.device)


def _log_fact(fault: OsFault) -> Fact:
    return quoted(f"The system log says that {fault.says}", fault.line)


def _finding(
    confidence: Confidence,
    fault: OsFault | None,
    facts: tuple[Fact, ...],
    chips: tuple[str, ...],
    message: str,
) -> Finding:
    where = f" ({fault.device})" if fault is not None and fault.device else ""
    return Finding(
        confidence,
        title=f"A disk, file system or file server{where} failed under the program.",
        short_title="Storage failed",
        because=facts,
        advice=(
            Advice(
                "Save what matters from there first, then look at that disk or server.",
                message[:300],
                "sudo dmesg | tail -50; sudo smartctl -a /dev/DISK; df -h; mount | grep -w ro",
            ),
            Advice(
                "Keep data and checkpoints of long runs on a local disk.",
                "A network file system that stops answering holds up every program that reads or writes there.",
            ),
        ),
        chips=chips,
    )
