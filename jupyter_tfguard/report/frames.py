"""The Python stack and the stderr tail of a report, without what says nothing about the crash."""

from __future__ import annotations

import re

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
    found: list[str] = []
    folded = 0
    for line in [*lines, ""]:
        frame = _FRAME.fullmatch(line)
        if frame and (
            _MACHINERY.search(frame["path"]) or (folded and _BELOW.search(frame["path"]))
        ):
            folded += 1
            continue
        if folded:
            found.append(f"  … {folded} frame{'s' * (folded > 1)} of IPython")
            folded = 0
        found.append(line)
    return found[:-1]


def short_frames(lines: list[str], width: int) -> list[str]:
    """As :func:`folded_frames`, with long paths cut in the middle."""
    return [
        _short(frame, width) if (frame := _FRAME.fullmatch(line)) else line[:width]
        for line in folded_frames(lines)
    ]


def without_harmless(lines: list[str]) -> list[str]:
    """The lines of the stderr tail, with adjacent lines that TensorFlow prints at every start folded into one."""
    found: list[str] = []
    folded = 0
    for line in [*lines, None]:
        if line is not None and any(part in line for part in _HARMLESS):
            folded += 1
            continue
        if folded:
            found.append(f"… {folded} known harmless line{'s' * (folded > 1)} of TensorFlow")
            folded = 0
        found += [] if line is None else [line]
    return found


def _short(frame: re.Match[str], width: int) -> str:
    start, path, end = frame.groups()
    room = max(20, width - len(start) - len(end))
    if len(path) > room:
        path = f"{path[: room // 3]}…{path[room // 3 + 1 - room :]}"
    return f"{start}{path}{end}"[: 2 * width]
