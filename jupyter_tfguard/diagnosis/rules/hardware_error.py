"""The machine's memory or processor failed, by the operating system's own word.

An error that was corrected harmed nobody. One that could not be corrected counts for the process that its line names; without
a name, for an end of the kernel's own making within the same minute, where it is one reading of several.
"""

from __future__ import annotations

from ..ending import ending_chips, exit_fact
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding, quoted
from ..os_log import CORRECTED, KILLS, MEMORY, OsFault, runs_python
from ..rule import CONSEQUENCES_OF_A_KILL, rule
from ..verdict import gave_up


@rule(
    "hardware_error",
    needs=("exit.status", "system_log"),
    outranks=(
        "bus_error_shm",
        "glibc_abort_heap_corruption",
        "illegal_instruction",
        *CONSEQUENCES_OF_A_KILL,
    ),
)
def hardware_error(seen: Evidence) -> Finding | None:
    faults = [f for f in seen.system_log.faults if f.about == MEMORY and f.weight != CORRECTED]
    named = [fault for fault in faults if fault.weight == KILLS]
    ours = next((fault for fault in named if _is_ours(seen, fault)), None)
    if ours is not None and not seen.kernel_alive:
        # The operating system sends SIGBUS for it, or SIGKILL where that could not be had.
        sure = seen.pasted is not None or seen.exit_signal in ("SIGBUS", "SIGKILL")
        certain = sure and (seen.pasted is not None or seen.exit_was_seen)
        return _finding(seen, ours, Confidence.CERTAIN if certain else Confidence.LIKELY)
    if named or not faults or (seen.pasted is None and not gave_up(seen)):
        return None  # it says whom it ended, and that was another one
    bus_error = seen.first_signal == "SIGBUS"
    return _finding(seen, faults[0], Confidence.LIKELY if bus_error else Confidence.POSSIBLE)


def _is_ours(seen: Evidence, fault: OsFault) -> bool:
    return runs_python(fault.name) if seen.pasted is not None else fault.pid == seen.pid


def _finding(seen: Evidence, fault: OsFault, confidence: Confidence) -> Finding:
    because = [quoted(f"The system log says that {fault.says}", fault.line)]
    if seen.pasted is None:
        because.append(exit_fact(seen))
    return Finding(
        confidence,
        title=f"The machine's memory or processor failed: {fault.says}.",
        short_title="Memory hardware failed",
        because=tuple(because),
        advice=(
            Advice(
                "Have the memory of this machine tested before the next long run.",
                "memtest86+ from a boot medium; on a server the event log of its management controller names the module.",
                "sudo ras-mc-ctl --errors  # or: sudo dmesg | grep -i -e 'hardware error' -e EDAC",
            ),
            Advice(
                "Take back overclocking and memory profiles (XMP, EXPO).",
                "They are the usual reason on machines without error-correcting memory.",
            ),
        ),
        chips=ending_chips(seen) if seen.pasted is None else (),
        beside=confidence is Confidence.POSSIBLE,
    )
