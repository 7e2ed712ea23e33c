"""No room was left on a file system."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("disk_full", needs=("kernel.recording",), outranks=("sys_exit",))
def disk_full(seen: Evidence) -> Finding | None:
    text = told(seen, "disk_full")
    if text is None:
        return None
    return text.finding(
        title="A file system had no room left, and native code gave up.",
        short_title="Disk full",
        advice=(
            Advice("Make room on the disk that the fatal line names.", text.message[:300], "df -h"),
        ),
    )
