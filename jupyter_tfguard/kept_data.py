"""What keeps memory: data that a run keeps on purpose, and objects of the notebook that grew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Kept:
    """Elements that a step of a pipeline keeps in memory.

    Attributes:
        text: What it keeps, and how it would keep less, a sentence.
        size_bytes: Of all elements, once it is full.
    """

    text: str
    size_bytes: int

    @property
    def added_bytes(self) -> int:
        """As much as it may have added."""
        return self.size_bytes


@dataclass(frozen=True, slots=True)
class Holder:
    """An object of the notebook that keeps memory.

    Attributes:
        name: As the user would write it: ``train.cache``, ``Keep.kept``, ``Out``.
        text: What it holds and how that grew, a sentence.
        how: How to free it or to keep less, a sentence.
        added_bytes: Memory that it took since the comparison began, estimated; None if that cannot be measured.
        size_bytes: All that it holds now, estimated; None if that cannot be measured.
        count: Entries now; None if it has none.
        added_count: Entries added since the comparison began.
        full_bytes: What it holds when it is full; None if nothing bounds it.
        is_old: It is kept from earlier cells, and may not have grown in this one.
    """

    name: str
    text: str
    how: str = ""
    added_bytes: int | None = None
    size_bytes: int | None = None
    count: int | None = None
    added_count: int | None = None
    full_bytes: int | None = None
    is_old: bool = False


_Keeps = TypeVar("_Keeps", Kept, Holder)


def large_part(kept: Sequence[_Keeps], added_bytes: float) -> list[_Keeps]:
    """Those that together may be half of the added memory or more, largest first; otherwise none."""
    found = sorted(kept, key=lambda one: -(one.added_bytes or 0))
    return found if 2 * sum(one.added_bytes or 0 for one in found) >= added_bytes else []


def holders_text(holders: Sequence[Holder]) -> str:
    """What they hold and how to free it, each way once."""
    ways = dict.fromkeys(one.how for one in holders if one.how)
    return " ".join([*(one.text for one in holders), *ways])
