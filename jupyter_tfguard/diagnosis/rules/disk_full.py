"""No room was left on a file system."""

from __future__ import annotations

from ..ending import ending_chips, fatal_facts, fatal_message
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule


@rule("disk_full", needs=("kernel.recording",), outranks=("sys_exit",))
def disk_full(seen: Evidence) -> Finding | None:
    message = fatal_message(seen)
    if message is None or message.cause != "disk_full":
        return None
    return Finding(
        Confidence.LIKELY,
        title="A file system had no room left, and native code gave up.",
        short_title="Disk full",
        because=fatal_facts(seen, message),
        advice=(
            Advice("Make room on the disk that the fatal line names.", message.text[:300], "df -h"),
        ),
        chips=ending_chips(seen),
    )
