"""Values of a bundle by type: a notebook can write anything into its own recording, so nothing there is trusted."""

from __future__ import annotations

from typing import Any

from ..units import is_known


def number_of(value: object) -> float | None:
    """The number; None when it is none, or not known."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_known(value):
        return None
    return value


def whole_of(value: object) -> int | None:
    """The number without its fraction; None when it is none, or not known."""
    found = number_of(value)
    return None if found is None else int(found)


def text_of(value: object) -> str | None:
    """The text; None when it is none, or empty."""
    return value if isinstance(value, str) and value else None


def dict_of(value: object) -> dict[str, Any]:
    """The dictionary; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def lines_of(value: object) -> list[str]:
    """The texts in a list; none for anything else."""
    return [line for line in value if isinstance(line, str)] if isinstance(value, list) else []
