"""The tables of outside facts as text: narrow rows side by side, wide ones below each other, each source once as a footnote."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

from ..diagnosis.catalog.listing import Listing, Row, Section
from ..diagnosis.catalog.origin import Source

_GAP = "  "
_LEAST = 20  # what a column of sentences needs
_SHORT = 24  # facts up to here stand side by side in a row of its own
_PROSE = ("says", "text", "meaning")  # a sentence needs no label
_UNSIGNED = 0x8000_0000  # numbers from here on are status words, known by their hexadecimal form

Json = dict[str, Any]


def overview(listings: list[Listing], width: int) -> str:
    """One line per table."""
    longest = max(len(found.name) for found in listings)
    lines = []
    for found in listings:
        head = f"{found.name:<{longest}}  {found.row_count:>5,} rows  {found.read}  "
        lines += textwrap.wrap(
            found.title, width, initial_indent=head, subsequent_indent=" " * len(head)
        )
    return "\n".join(lines) + "\n"


def to_json(listings: list[Listing]) -> list[Json]:
    """The same facts for programs."""
    return [
        {
            "name": found.name,
            "title": found.title,
            "read": found.read.isoformat(),
            "sections": {
                section.name: [_row_json(r) for r in section.rows] for section in found.sections
            },
        }
        for found in listings
    ]


def _row_json(row: Row) -> Json:
    sources = [
        {"name": s.name, "place": s.place or None, "url": s.url, "read": s.read.isoformat()}
        for s in row.origin.sources
    ]
    return {
        **row.facts,
        "check": row.origin.check.value,
        "verified": row.origin.verified,
        "sources": sources,
    }


def render(found: Listing, width: int) -> str:
    """One table.

    Args:
        width: Columns of the screen.
    """
    notes: dict[Source, int] = {}
    parts = [
        found.title,
        *(_section(section, width, notes) for section in found.sections if section.rows),
    ]
    if any(not row.origin.verified for section in found.sections for row in section.rows):
        parts.append("? not verified: told, and never decides alone")
    days = {source.read for source in notes}
    heading = f"Sources, as of {found.read}" if len(days) == 1 else "Sources"
    lines = [_note(number, source, width, dated=len(days) > 1) for source, number in notes.items()]
    return "\n\n".join([*parts, "\n".join([heading, *lines])]) + "\n"


def _note(number: int, source: Source, width: int, *, dated: bool) -> str:
    text = source.name + (f", as of {source.read}" if dated else "")
    head = f"  [{number}]".ljust(7)
    return "\n".join([*_wrap(text, width, head, " " * 7), " " * 7 + source.url])


def _section(section: Section, width: int, notes: dict[Source, int]) -> str:
    marks = [_mark(row, notes) for row in section.rows]
    facts = [
        {key: _text(value) for key, value in _with_places(row).items()} for row in section.rows
    ]
    keys = list(dict.fromkeys(key for row in facts for key in row))
    cells = [[row.get(key, "") for key in keys] for row in facts]
    titles = [key.replace("_", " ") for key in keys]
    heading = [section.name.replace("_", " "), *_wrap(section.about, width, "  ", "  ")]
    widths = _widths([titles, *cells], width - 2 * len(_GAP) - max(map(len, marks)))
    if widths is None:
        lists = {
            key
            for row in section.rows
            for key, fact in _with_places(row).items()
            if isinstance(fact, list)
        }
        body = [
            _record(keys, row, lists, mark, width) for row, mark in zip(cells, marks, strict=True)
        ]
    else:
        rows = zip([titles, *cells], ["", *marks], strict=True)
        body = [_side_by_side(row, mark, widths) for row, mark in rows]
    return "\n".join([*heading, "", *body])


def _with_places(row: Row) -> Json:
    """The facts, and where in its sources a row was read."""
    places = [source.place for source in row.origin.sources if source.place]
    return {**row.facts, "source": places} if places else row.facts


def _mark(row: Row, notes: dict[Source, int]) -> str:
    whole = [replace(source, place="") for source in row.origin.sources]
    numbers = [str(notes.setdefault(source, len(notes) + 1)) for source in whole]
    return f"[{','.join(numbers)}]" + ("" if row.origin.verified else " ?")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        parts = [str(part).strip() for part in value]
        return (" | " if any("," in part or ";" in part for part in parts) else ", ").join(parts)
    return f"0x{value:08X}" if isinstance(value, int) and value >= _UNSIGNED else str(value)


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _widths(rows: list[list[str]], width: int) -> list[int] | None:
    """The width of each column; None when they do not fit side by side."""
    columns = list(zip(*rows, strict=True))
    natural = [max(map(len, column)) for column in columns]
    words = [
        max((len(word) for cell in column for word in cell.split()), default=0)
        for column in columns
    ]
    found = [max(word, min(whole, _LEAST)) for word, whole in zip(words, natural, strict=True)]
    left = width - len(_GAP) * (len(found) - 1) - sum(found)
    if left < 0:
        return None
    for index in sorted(range(len(found)), key=lambda i: natural[i] - found[i]):
        more = min(left, natural[index] - found[index])
        found[index], left = found[index] + more, left - more
    return found


def _side_by_side(cells: list[str], mark: str, widths: list[int]) -> str:
    wrapped = [_wrap(cell, size) or [""] for cell, size in zip(cells, widths, strict=True)]
    lines = []
    for index in range(max(map(len, wrapped))):
        parts = [cell[index] if index < len(cell) else "" for cell in wrapped]
        line = _GAP + _GAP.join(part.ljust(size) for part, size in zip(parts, widths, strict=True))
        lines.append((line + _GAP + mark if index == 0 else line).rstrip())
    return "\n".join(lines)


def _record(keys: list[str], cells: list[str], lists: set[str], mark: str, width: int) -> str:
    """A row below each other: what it is called, what it says, short facts, then lists and long facts with their labels."""
    row = {key: cell for key, cell in zip(keys, cells, strict=True) if cell}
    head = [row.pop(key) for key in (keys[0], "name") if key in row]
    prose = next((row.pop(key) for key in _PROSE if key in row), "")
    long = [key for key, cell in row.items() if key in lists or len(cell) > _SHORT]
    short = [f"{key.replace('_', ' ')} {cell}" for key, cell in row.items() if key not in long]
    labels = {key.replace("_", " "): row[key] for key in long}
    column = max(map(len, labels), default=0)
    lines = [f"  {'  '.join(head)}  {mark}", *_wrap(prose, width, "    ", "    ")]
    lines += _wrap(" · ".join(short), width, "    ", "    ")
    for label, cell in labels.items():
        lines += _wrap(cell, width, f"    {label:<{column}}  ", " " * (column + 6))
    return "\n".join(lines)
