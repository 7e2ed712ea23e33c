"""Other readings of a pasted text, for one that shows no cause as it stands: without marks, and with wrapped lines joined.

A person pastes few lines. Longer texts come from a file or a terminal and are read as they stand.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from .log_lines import FRESH, LONGEST_LINE, QUOTE_MARKS, log_lines
from .progress import PROGRESS
from .signs import Role
from .story import Story

_MOST_LINES = 400
_SHORTEST_WRAPPED = 30
# How the rest of a wrapped line begins.
_REST = re.compile(r"[a-z(]|[A-Z][a-z]{1,30} [a-z]|(?:[\w-]{1,60}/){2}|\d")
# **Killed**      `Killed`      │ Killed   │      - Killed      • Killed
_MARKS = " \t*`_~|│┃║•·▪-"
_PIECE = re.compile(r"\d+|\D")
# A prefix ends here: "worker-0: ", "ERROR:root:", "[10:11:12] ", "lab run.sh[811]: "
_PREFIX_END = re.compile(r".*[\s:\])>|]", re.DOTALL)
_LONGEST_PREFIX = 120
_ROLES = list(Role)
# From this role on, a sign says only that or how a program ended.
_NO_CAUSE = _ROLES.index(Role.FATAL)


def story_of(text: str) -> Story:
    """The story of a pasted text. If it shows no cause, also without marks around its lines, and with wrapped lines joined."""
    story = Story(log_lines(text))
    if _weight(story) < _NO_CAUSE:
        return story
    others = (Story(log_lines(other)) for other in readings(text))
    return min((story, *others), key=_weight)


def _weight(story: Story) -> int:
    return len(_ROLES) if story.best is None else _ROLES.index(story.best.role)


def readings(text: str) -> Iterator[str]:
    """Other texts that the user may have meant. Each has the lines of the text at the same places."""
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        return
    found = [lines]
    bare = [line.strip(_MARKS) for line in _without_prefix(lines)]
    if bare != [line.strip() for line in lines]:
        found.append(bare)
        yield "\n".join(bare)
    for plain in found:
        joined = _joined(plain)
        if joined != plain:
            yield "\n".join(joined)


def _without_prefix(lines: Sequence[str]) -> list[str]:
    """The lines without the beginning that all of them share, if only its numbers differ: a time, a host, a level."""
    filled = [_PIECE.findall(line[:_LONGEST_PREFIX]) for line in lines if line.strip()]
    shared = []
    for column in zip(*filled, strict=False):
        same = {"0" if piece.isdigit() else piece for piece in column}
        if len(same) > 1:
            break
        shared.append(same.pop())
    end = _PREFIX_END.match("".join(shared))
    if len(filled) < 2 or end is None:
        return list(lines)
    return [
        line[sum(map(len, itertools.islice(_PIECE.findall(line[:_LONGEST_PREFIX]), end.end()))) :]
        for line in lines
    ]


def _joined(lines: Sequence[str]) -> list[str]:
    """The lines, with each joined to the next one where that may be its rest; the places of the rests are empty."""
    found = list(lines)
    begin = 0
    for place, line in enumerate(lines[1:], 1):
        whole, rest = found[begin], QUOTE_MARKS.sub("", line, count=1)
        if (
            _SHORTEST_WRAPPED <= len(whole) < LONGEST_LINE
            and not whole.endswith((".", ":", ";", "{", ")", "]", "`", "|"))
            and _REST.match(rest) is not None
            and FRESH.match(rest) is None
            and PROGRESS.search(rest[:LONGEST_LINE]) is None
        ):
            found[begin], found[place] = f"{whole.rstrip()} {rest.strip()}", ""
        else:
            begin = place
    return found
