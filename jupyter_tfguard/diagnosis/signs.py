"""Find the messages of ``catalog/messages.toml`` in a log. Signs are not ranked against each other here."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .catalog import table
from .log_lines import Haystack, LogLine, without_guesses


class Role(enum.Enum):
    """What a message can say, in order of weight (see messages.toml)."""

    SETTLES = "settles"
    NAMES = "names"
    DEGRADES = "degrades"
    SUGGESTS = "suggests"
    FATAL = "fatal"
    ENDING = "ending"
    ENDED = "ended"
    FAILED = "failed"
    HINTS = "hints"
    NOISE = "noise"


@dataclass(frozen=True)
class MessageRow:
    """One row of the table, as described there."""

    id: str
    cause: str
    role: Role
    needles: tuple[str, ...]
    pattern: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    says: str
    check: str
    source: str
    speaker: str = "native"
    aborts: bool = False
    printed: bool = False
    root: bool = False
    wraps: bool = False
    sets: tuple[tuple[str, str], ...] = ()

    def find(self, text: str) -> re.Match[str] | bool:
        """Match a line that contains one of the needles; False for no match."""
        if self.unless is not None and self.unless.search(text):
            return False
        return True if self.pattern is None else self.pattern.search(text) or False


@dataclass(frozen=True)
class Sign:
    """A line that matches a message.

    Attributes:
        row: The message.
        line: The line.
        index: Index of the line among all lines.
        details: Words that the row sets, and named groups of the pattern, as matched in the line.
    """

    row: MessageRow
    line: LogLine
    index: int
    details: tuple[tuple[str, str], ...] = ()

    @property
    def cause(self) -> str:
        """The label of the cause."""
        return self.row.cause

    @property
    def role(self) -> Role:
        """The role of the message."""
        return self.row.role


@functools.cache
def message_rows() -> tuple[MessageRow, ...]:
    """The rows of the table, in order. If several rows match a line, the heaviest role counts, then the first row."""
    return tuple(
        MessageRow(
            row["id"],
            row["cause"],
            Role(row["role"]),
            tuple(row["needles"]),
            _compiled(row.get("pattern")),
            _compiled(row.get("unless")),
            row["says"],
            row["check"],
            row["source"],
            row.get("speaker", "native"),
            row.get("aborts", False),
            row.get("printed", False),
            row.get("root", False),
            row.get("wraps", False),
            tuple(row.get("sets", {}).items()),
        )
        for row in table("messages")["message"]
    )


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None else re.compile(pattern)


# A record at fatal level that no row matches.
FATAL_RECORD = MessageRow(
    "fatal-record",
    "tf_check_failed",
    Role.FATAL,
    (),
    None,
    None,
    "a native library aborted",
    "measured",
    "tensorflow 2.15 to 2.21",
)


def find_signs(
    lines: Sequence[LogLine],
    haystack: Haystack,
    begin: int,
    end: int,
    role: Role | None = None,
) -> list[Sign]:
    """All signs in ``lines[begin:end]``, in order; one per line, the heaviest.

    Args:
        haystack: The haystack of all lines.
        role: Search only for messages with this role.
    """
    found: dict[int, Sign] = {}
    order = list(Role)
    for row in message_rows():
        if role is not None and row.role is not role:
            continue
        for place in haystack.places(row.needles, begin, end):
            line = lines[place]
            text = without_guesses(line.text)
            if row.wraps and place + 1 < end:
                text = f"{text.rstrip()} {lines[place + 1].text.lstrip()}"
            hit = row.find(text)
            if hit is False or (hit is not True and hit.start() >= len(line.text)):
                continue
            old = found.get(place)
            if (
                old is not None
                and order.index(old.role) <= order.index(row.role)
                and not (row.role is Role.NOISE and old.role is not Role.SETTLES)
            ):
                continue
            details = (
                ()
                if hit is True
                else tuple((name, value) for name, value in hit.groupdict().items() if value)
            )
            found[place] = Sign(row, line, place, row.sets + details)
    for place in range(begin, end):
        if lines[place].severity == "F" and place not in found:
            found[place] = Sign(FATAL_RECORD, lines[place], place)
    return [found[place] for place in sorted(found)]
