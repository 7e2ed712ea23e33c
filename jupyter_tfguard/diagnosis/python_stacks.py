"""faulthandler's text: which signal it tells of, and where the Python of the crashed thread was."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

# The Python error line that faulthandler writes, and the signal it stands for. Source: CPython Modules/faulthandler.c
FAULT_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
# "Fatal Python error: Segmentation fault"
FAULT_LINE = re.compile(r"^Fatal Python error: (.{1,80}?)$")

# Often in the middle of a line: the one that was being written.
CRASHED_AGAIN = "Fatal Python error: Segmentation fault"

# "Current thread 0x00007f3a (most recent call first):", after the stacks of the other threads; a single thread: "Stack (..."
_OWN_STACK = re.compile(
    r"^(?:Current thread 0x[0-9a-f]{1,16}|Stack)\b.{0,80}most recent call first"
)
# The file name that ipykernel gives a cell:   File "/tmp/ipykernel_4711/1234567890.py", line 4 in poke
_CELL_FRAME = re.compile(
    r'^\s+File "[^"]{0,300}ipykernel_\d+[^"]{0,100}", line (?P<line>\d{1,7}) in (?P<name>.{1,100})$'
)

_FRAME = re.compile(r'^\s+File "(?P<file>[^"]{0,400})", line \d{1,7} in (?P<name>.{1,100})$')
_CUT_FRAMES = 100
_LEAF_FRAMES = 5
_REPEATED_FRAMES = 8


def own_stacks(texts: Iterable[list[str]]) -> list[list[str]]:
    """The frames of the thread that got the signal, innermost first, of each text that tells them.

    None where the crash was in a thread without Python: the other threads' lines say nothing about it.
    """
    found = []
    for lines in texts:
        head = next((i for i, line in enumerate(lines) if _OWN_STACK.match(line)), None)
        if head is not None:
            frames = itertools.takewhile(lambda line: line.startswith("  "), lines[head + 1 :])
            found.append(list(frames))
    return found


def endless(frames: list[str]) -> bool:
    """True for the stack of a function that calls itself, or a few that call each other, down to the crash.

    faulthandler writes the innermost 100 frames, then ``  ...``: of an endless recursion all of them are the same few lines.
    The innermost one is one of these, or the first line of one of these functions. Where it is another function's, that one
    crashed, however deep it was called.
    """
    if not frames or frames[-1].strip() != "..." or len(frames) < _CUT_FRAMES:
        return False
    repeated = set(frames[_LEAF_FRAMES:-1])
    if len(repeated) > _REPEATED_FRAMES:
        return False
    return _function(frames[0]) in {_function(frame) for frame in repeated}


def _function(frame: str) -> str:
    found = _FRAME.match(frame)
    return f"{found['file']} {found['name']}" if found else frame


def cell_frame(frames: Iterable[str]) -> str | None:
    """``line N of the cell, in name``: the first of these frames that is of the notebook's own code."""
    for frame in frames:
        if found := _CELL_FRAME.match(frame):
            place = "" if found["name"] == "<module>" else f", in {found['name']}"
            return f"line {found['line']} of the cell{place}"
    return None
