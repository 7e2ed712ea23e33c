"""Read values of a bundle by type. A notebook can write anything into its own recording, so no value is trusted."""

from __future__ import annotations

from typing import Any

from ..units import is_known


def number_of(value: object) -> float | None:
    """The number; None if the value is not a number or not known."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_known(value):
        return None
    return value


def whole_of(value: object) -> int | None:
    """The number without its fraction; None if the value is not a number or not known."""
    found = number_of(value)
    return None if found is None else int(found)


def text_of(value: object) -> str | None:
    """The text; None if the value is not a text, or empty."""
    return value if isinstance(value, str) and value else None


def dict_of(value: object) -> dict[str, Any]:
    """The dictionary; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def lines_of(value: object) -> list[str]:
    """The texts in a list; an empty list for anything else."""
    return [line for line in value if isinstance(line, str)] if isinstance(value, list) else []
