"""faulthandler's text: which signal it reports, and the Python stack of the crashed thread."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

# The error name in faulthandler's first line, and the signal that it means. Source: CPython Modules/faulthandler.c
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

# Often in the middle of a line, because another line was being written.
CRASHED_AGAIN = "Fatal Python error: Segmentation fault"

# "Current thread 0x00007f3a (most recent call first):", after the stacks of the other threads; a single thread: "Stack (..."
OWN_STACK = re.compile(r"^(?:Current thread 0x[0-9a-f]{1,16}|Stack)\b.{0,80}most recent call first")
# The file name that ipykernel gives a cell:   File "/tmp/ipykernel_4711/1234567890.py", line 4 in poke
_CELL_FRAME = re.compile(
    r'^\s+File "[^"]{0,300}ipykernel_\d+[^"]{0,100}", line (?P<line>\d{1,7}) in (?P<name>.{1,100})$'
)

_FRAME = re.compile(r'^\s+File "(?P<file>[^"]{0,400})", line \d{1,7} in (?P<name>.{1,100})$')
_IMPORT = 'File "<frozen importlib.'
_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\](?P<package>\w{1,60})")
_CUT_FRAMES = 100
_LEAF_FRAMES = 5
_REPEATED_FRAMES = 8


# Lines of faulthandler's text below its first: heads of threads, frames, modules; since Python 3.14 also the C stack.
_FAULT_TEXT = re.compile(
    r"^(?:(?:Current thread|Thread|Stack|Current thread's C stack trace)\b.{0,160}\(most recent call first\):"
    r"|  (?:File |\.\.\.|<|Binary file |Cannot get )|Extension modules: |Python runtime state: |\s*$)"
)


def without_fault_text(lines: list[str]) -> list[str]:
    """The lines without faulthandler's last text about a signal.

    A user who has enabled faulthandler has it in the stderr tail, after the message that explains the crash.
    """
    heads = [i for i, line in enumerate(lines) if FAULT_LINE.match(line)]
    if not heads or (found := FAULT_LINE.match(lines[heads[-1]])) is None:
        return lines
    if found[1] not in FAULT_SIGNALS:
        return lines  # the interpreter's own message about its state
    below = itertools.dropwhile(_FAULT_TEXT.match, lines[heads[-1] + 1 :])
    return [*lines[: heads[-1]], *below]


def own_stacks(texts: Iterable[list[str]]) -> list[list[str]]:
    """The frames of the thread that got the signal, innermost first, of each text that contains them.

    Empty if the crash was in a thread without Python: the lines of other threads are no evidence.
    """
    found = []
    for lines in texts:
        head = next((i for i, line in enumerate(lines) if OWN_STACK.match(line)), None)
        if head is not None:
            frames = itertools.takewhile(lambda line: line.startswith("  "), lines[head + 1 :])
            found.append(list(frames))
    return found


def endless(frames: list[str]) -> bool:
    """True for the stack of an endless recursion of one function, or of a few that call each other.

    faulthandler writes the innermost 100 frames, then ``  ...``. In an endless recursion they are all the same few lines.
    The innermost frame is one of these, or another line of one of these functions. If it belongs to a different function,
    that function crashed, however deep the call.
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
    """``line N of the cell, in name``: the first of these frames that is notebook code."""
    for frame in frames:
        if found := _CELL_FRAME.match(frame):
            place = "" if found["name"] == "<module>" else f", in {found['name']}"
            return f"line {found['line']} of the cell{place}"
    return None


def without_import(frames: list[str]) -> list[str]:
    """The frames without those of Python's import system at the innermost end: ``<frozen importlib._bootstrap>``."""
    return list(itertools.dropwhile(lambda frame: _IMPORT in frame, frames))


def package_of(frames: Iterable[str]) -> str | None:
    """Name of the installed package whose line is the innermost that the notebook called."""
    called = itertools.takewhile(lambda frame: not _CELL_FRAME.match(frame), frames)
    found = (_PACKAGE.search(frame) for frame in called)
    return next((hit["package"] for hit in found if hit), None)
