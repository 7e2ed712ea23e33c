"""How much a tool said about a death: one rule for all tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from tests.benchmarks.peers.deaths import Death
from tests.benchmarks.peers.watching import Said

_DIED = re.compile(r"died|dead|stopped|disconnected", re.IGNORECASE)
# The operator's place, not the user's.
SERVER = "server's terminal"
# Looked up afterwards, and quoted beside the answer.
_STORED = ("panel figures", "profile")
_MOST_CHARACTERS = 170
_PATH = re.compile(r"(?<![\w./])[~/](?:[\w.+~-]*/)+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class Level(IntEnum):
    """What a text says."""

    NOTHING = 0
    DIED = 1
    ENDING = 2
    CAUSE = 3


@dataclass(frozen=True)
class Answer:
    """The best that a tool said.

    Attributes:
        level: How much it says.
        quote: The part that says it.
        said: The whole; None when there is none.
    """

    level: Level
    quote: str = ""
    said: Said | None = None


def best(death: Death, said: list[Said], *, server: bool = False) -> Answer:
    """The first text of the highest level, among those of the user or those of the server's terminal."""
    answers = [
        _judged(death, one)
        for one in said
        if one.where not in _STORED and (one.where == SERVER) is server
    ]
    return max(answers, key=lambda answer: answer.level, default=Answer(Level.NOTHING))


def _judged(death: Death, said: Said) -> Answer:
    patterns = [(Level.CAUSE, death.cause), (Level.ENDING, death.ending)]
    if death.kernel_ends:
        patterns.append((Level.DIED, _DIED.pattern))
    for level, pattern in patterns:
        if found := re.search(pattern, said.text, re.IGNORECASE):
            return Answer(level, _around(said.text, found.start()), said)
    return Answer(Level.NOTHING)


def _around(text: str, at: int) -> str:
    """The whole text where it is short, else the sentence or line at a position, else what is around it."""
    if len(text) <= _MOST_CHARACTERS:
        return shortened(text)
    cuts = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
    begins = max(cut for cut in cuts if cut <= at)
    ends = min(cut for cut in cuts if cut > at)
    if at - begins > _MOST_CHARACTERS // 2:
        return "…" + shortened(text[at - _MOST_CHARACTERS // 2 : ends])
    return shortened(text[begins:ends])


def shortened(text: str) -> str:
    """On one line, without folders of this machine, and not too long."""
    plain = _PATH.sub("…/", " ".join(text.split()))
    return plain if len(plain) <= _MOST_CHARACTERS else plain[: _MOST_CHARACTERS - 1] + "…"


def stored(said: list[Said]) -> list[tuple[str, str]]:
    """What was kept or shown beside the answer, as place and a short quote."""
    found = []
    for one in said:
        if one.where == "report":
            found.append((one.where, " · ".join(one.text.split("\n\n")[1].split(" · ")[:2])))
        elif one.where == "panel figures":
            lines = [line for line in one.text.splitlines() if re.match(r"(CPU|Memory):", line)]
            found.append((one.where, shortened("; ".join(lines)) or "charts, no text"))
        elif one.where == "terminal" and one.text.startswith("exit code"):
            found.append((one.where, one.text))
        elif one.where in (*_STORED, "written notebook"):
            found.append((one.where, shortened(one.text)))
    return found
