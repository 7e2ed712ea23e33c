"""The tables as they are shown: each with its rows and where they come from."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from importlib import resources
from typing import Any

from . import table
from .origin import Origin, origin

_OWN = {"source"}  # arrays that hold no facts


@dataclass(frozen=True)
class Row:
    """One row: its facts as the file has them, and where they come from."""

    facts: dict[str, Any]
    origin: Origin


@dataclass(frozen=True)
class Section:
    """One array of a file.

    Attributes:
        about: What it holds; empty where the file does not say.
    """

    name: str
    about: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Listing:
    """One file.

    Attributes:
        title: What it is about.
        read: When one of its sources was last looked at.
    """

    name: str
    title: str
    sections: tuple[Section, ...]

    @property
    def row_count(self) -> int:
        """Facts in all sections."""
        return sum(len(section.rows) for section in self.sections)

    @property
    def read(self) -> datetime.date:
        """When one of its sources was last looked at."""
        rows = (row for section in self.sections for row in section.rows)
        return max(source.read for row in rows for source in row.origin.sources)


def table_names() -> tuple[str, ...]:
    """All tables, by name."""
    files = (entry.name for entry in resources.files(__package__).iterdir())
    names = {file.removesuffix(".toml") for file in files if file.endswith(".toml")}
    return tuple(sorted(names - {"sources"}))


def listing(name: str) -> Listing:
    """One table with all its rows."""
    file = table(name)
    about: dict[str, str] = file.get("about", {})
    sections = tuple(
        Section(key, about.get(key, ""), tuple(_row(name, row) for row in rows))
        for key, rows in _in_order(file, about)
    )
    return Listing(name, file.get("title", name), sections)


def _in_order(
    file: dict[str, Any], about: dict[str, str]
) -> list[tuple[str, list[dict[str, Any]]]]:
    """The arrays in the order in which the file explains them; the others after them."""
    arrays = [key for key, rows in file.items() if isinstance(rows, list) and key not in _OWN]
    order = [key for key in about if key in arrays]
    return [(key, file[key]) for key in [*order, *(key for key in arrays if key not in order)]]


def _row(name: str, row: dict[str, Any]) -> Row:
    facts = {key: value for key, value in row.items() if key not in ("check", "source")}
    return Row(facts, origin(name, row))
