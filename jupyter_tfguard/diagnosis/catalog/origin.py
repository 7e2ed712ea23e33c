"""Where a row of a table comes from, and how far that was verified."""

from __future__ import annotations

import datetime
import enum
import functools
import re
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import InvalidVersion, Version

from . import table

_FIRST_WORD = re.compile(r"[\w+]+")


class Check(enum.Enum):
    """How far a row was verified."""

    MEASURED = "measured"  # seen by running the software
    READ = "read"  # the primary source was read
    SECONDARY = "secondary"  # a copy of it, or several reports that agree
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Source:
    """A text that rows were taken from.

    Attributes:
        read: When it, or the project's notes of it, were last looked at.
        place: Where in it; empty for all of it.
    """

    name: str
    url: str
    read: datetime.date
    place: str = ""


@dataclass(frozen=True)
class Origin:
    """Where a fact comes from."""

    check: Check
    sources: tuple[Source, ...]

    @property
    def verified(self) -> bool:
        """False: it may be told, and never decides alone."""
        return self.check is not Check.UNVERIFIED

    @property
    def text(self) -> str:
        """The sources by name, or by the place in them."""
        return "; ".join(source.place or source.name for source in self.sources)

    def __add__(self, other: Origin) -> Origin:
        """Of what follows from both: verified no further than the weaker one."""
        order = list(Check)
        weaker = max(self.check, other.check, key=order.index)
        return Origin(weaker, tuple(dict.fromkeys(self.sources + other.sources)))


def origin(name: str, row: dict[str, Any]) -> Origin:
    """The origin of one row of a table.

    Raises:
        KeyError: Its source is neither in the table nor a project of ``sources.toml``.
    """
    named = [row["source"]] if isinstance(row["source"], str) else row["source"]
    return Origin(Check(row["check"]), tuple(_source(name, source) for source in named))


def _source(name: str, text: str) -> Source:
    own = _sources(name).get(text.lower())
    if own is not None:
        return own
    first = _FIRST_WORD.match(text)
    if first is None or first[0].lower() not in _sources("sources"):
        raise KeyError(
            f"{name}.toml: the source {text!r} is not known, and is no project of sources.toml."
        )
    return replace(_sources("sources")[first[0].lower()], place=text)


@functools.cache
def _sources(name: str) -> dict[str, Source]:
    return {
        row["id"].lower(): Source(row["name"], row["url"], row["read"])
        for row in table(name).get("source", [])
    }


def released(text: str) -> Version | None:
    """A version as its makers released it; None for a nightly, a candidate, a home-made or patched one, and for no version.

    A table knows releases only: nothing follows from them for what was built from other sources.
    """
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    odd = version.is_prerelease or version.is_postrelease or version.local is not None
    return None if odd else version
