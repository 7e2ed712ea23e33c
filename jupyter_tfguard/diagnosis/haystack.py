"""Lines as one text, which is searched for fixed words many times quicker than line by line."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence

# Of a message that is repeated ten thousand times the first ones count.
_HITS_OF_A_ROW = 40


class Haystack:
    """Some lines, joined once for all who search them.

    Args:
        lines: Without line ends.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n".join(lines)
        # Where each line begins, and the length of all.
        self.starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))

    def place(self, position: int) -> int:
        """Number of the line at this position of the text."""
        return bisect.bisect_right(self.starts, position) - 1

    def places(
        self, needles: Iterable[str], begin: int = 0, end: int | None = None
    ) -> Iterator[int]:
        """Numbers of the first lines of ``[begin:end]`` that hold one of the needles, each once."""
        starts, seen = self.starts, set()
        last = len(self.text) if end is None else max(0, starts[end] - 1)
        for needle in needles:
            position, hits = self.text.find(needle, starts[begin], last), 0
            while position >= 0 and hits < _HITS_OF_A_ROW:
                place = self.place(position)
                if place not in seen:
                    seen.add(place)
                    yield place
                hits += 1
                position = self.text.find(needle, starts[place + 1], last)
