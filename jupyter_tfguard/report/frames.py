"""The Python stack of a report in lines of readable length."""

from __future__ import annotations

import re

#   File "/usr/lib/python3.11/threading.py", line 320 in wait
_FRAME = re.compile(r'(?P<start>\s+File ")(?P<path>.+)(?P<end>", line \d+ in .+)')
_MACHINERY = re.compile(r"[/\\](IPython|ipykernel|jupyter_tfguard|ipykernel_launcher\.py)\b")
# Frames between and below those of IPython: its event loop and the start of the program.
_BELOW = re.compile(r"[/\\](tornado|asyncio|traitlets)[/\\]|[/\\]runpy\.py$|^<frozen runpy>$")


def short_frames(lines: list[str], width: int) -> list[str]:
    """The lines of a stack, with frames of IPython and tfguard folded into one line, and long paths cut in the middle."""
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
        found.append(_short(frame, width) if frame else line[:width])
    return found[:-1]


def _short(frame: re.Match[str], width: int) -> str:
    start, path, end = frame.groups()
    room = max(20, width - len(start) - len(end))
    if len(path) > room:
        path = f"{path[: room // 3]}…{path[room // 3 + 1 - room :]}"
    return f"{start}{path}{end}"[: 2 * width]
