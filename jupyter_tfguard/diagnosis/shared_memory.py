"""Words about shared memory that was too small, of a program that a bus error ended."""

from __future__ import annotations

import re

from .evidence import Evidence
from .text_age import native_text_is_old

_LINES = 40
# Python's resource tracker, after its owner's death:
# UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown
# A mention is none: libraries tell in passing that they go by shared memory.
_MEMORY = r"(?:shared[ _]memory|/dev/shm|\bshm)"
_TROUBLE = (
    r"(?:insufficient|not enough|out of|too small|too little|no space|leaked|exhausted|fail|error|unable|cannot|can't|could not|"
    r"couldn't|is full|limit)"
)
_COMPLAINT = re.compile(
    rf"{_TROUBLE}.{{0,120}}?{_MEMORY}|{_MEMORY}.{{0,120}}?{_TROUBLE}", re.IGNORECASE
)
# NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct
_REMARK = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b|^\S+ \S+: I |^I\d{4} ")
_MODULE = "multiprocessing/shared_memory"


def shared_memory_words(seen: Evidence) -> str | None:
    """The line that says it, or the Python frame in which the signal came; None without either."""
    if seen.first_signal != "SIGBUS" or native_text_is_old(seen):
        return None
    for line in reversed(seen.stderr_lines[-_LINES:]):
        if _COMPLAINT.search(line[:1000]) and not _REMARK.search(line[:1000]):
            return line
    return next((line for line in seen.own_frames if _MODULE in line), None)
