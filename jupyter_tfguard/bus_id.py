"""Compares PCI bus addresses of cards, which different sources write with different numbers of zeros."""

from __future__ import annotations

import re


def same_card(one: object, other: object) -> bool:
    """True for two addresses of one card; False if one is unknown.

    Equal are, for example, ``0000:41:00.0``, ``00000000:41:00.0`` and ``0000:41:00``.
    """
    known = isinstance(one, str) and isinstance(other, str) and one and other
    return bool(known) and _place(str(one)) == _place(str(other))


def _place(text: str) -> str:
    parts = re.split(r"[:.]", text.lower())
    if len(parts) > 3 and "." in text:
        parts = parts[:-1]
    return ":".join(part.lstrip("0") or "0" for part in parts[-3:])
