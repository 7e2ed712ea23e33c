"""The Python stack and the stderr tail of a report, without what says nothing about the crash."""

from __future__ import annotations

import re
from collections.abc import Callable

#   File "/usr/lib/python3.11/threading.py", line 320 in wait
_FRAME = re.compile(r'(?P<start>\s+File ")(?P<path>.+)(?P<end>", line \d+ in .+)')
_MACHINERY = re.compile(r"[/\\](IPython|ipykernel|jupyter_tfguard|ipykernel_launcher\.py)\b")
# Frames between and below those of IPython: its event loop and the start of the program.
_BELOW = re.compile(r"[/\\](tornado|asyncio|traitlets)[/\\]|[/\\]runpy\.py$|^<frozen runpy>$")
# What TensorFlow 2.15 to 2.21 prints when it is imported or first used, on machines with and without a GPU. Only whole messages:
# other lines of these source files matter.
_HARMLESS = (
    "oneDNN custom operations are on.",
    "This TensorFlow binary is optimized to use available CPU instructions",
    "To enable the following instructions: ",
    "All log messages before absl::InitializeLog() is called are written to STDERR",
    "when one has already been registered",  # of the cuFFT, cuDNN and cuBLAS factories; computation placer
    "Could not find cuda drivers on your machine, GPU will not be used.",
    "TF-TRT Warning: Could not find TensorRT",
)


def folded_frames(lines: list[str]) -> list[str]:
    """The lines of a stack, with frames of IPython and tfguard folded into one line."""
    return _folded(
        lines, _is_machinery, lambda count: f"  … {count} frame{'s' * (count > 1)} of IPython"
    )


def short_frames(lines: list[str], width: int) -> list[str]:
    """As :func:`folded_frames`, with long paths cut in the middle."""
    return [
        _short(frame, width) if (frame := _FRAME.fullmatch(line)) else line[:width]
        for line in folded_frames(lines)
    ]


def without_harmless(lines: list[str]) -> list[str]:
    """The lines of the stderr tail, with adjacent lines that TensorFlow prints at every start folded into one."""
    return _folded(
        lines,
        lambda line, _: any(part in line for part in _HARMLESS),
        lambda count: f"… {count} known harmless line{'s' * (count > 1)} of TensorFlow",
    )


def _is_machinery(line: str, is_in_fold: bool) -> bool:
    frame = _FRAME.fullmatch(line)
    if frame is None:
        return False
    below = is_in_fold and _BELOW.search(frame["path"])
    return bool(_MACHINERY.search(frame["path"]) or below)


def _folded(
    lines: list[str], folds: Callable[[str, bool], bool], text: Callable[[int], str]
) -> list[str]:
    """The lines, with adjacent ones that fold as one line.

    Args:
        lines: The lines.
        folds: Whether a line folds, given also whether the line before it does.
        text: The line for as many.
    """
    found: list[str] = []
    count = 0
    for line in lines:
        if folds(line, count > 0):
            count += 1
            continue
        found += [text(count)] if count else []
        found.append(line)
        count = 0
    return found + ([text(count)] if count else [])


def _short(frame: re.Match[str], width: int) -> str:
    start, path, end = frame.groups()
    room = max(20, width - len(start) - len(end))
    if len(path) > room:
        path = f"{path[: room // 3]}…{path[room // 3 + 1 - room :]}"
    return f"{start}{path}{end}"[: 2 * width]
