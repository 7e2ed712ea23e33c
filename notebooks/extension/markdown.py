"""Markdown from texts of the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ROLE = re.compile(r":\w+:`~*\.*([^`]+)`")


def prose(text: str) -> str:
    """A docstring or help text as one line of Markdown."""
    text = _ROLE.sub(r"`\1`", " ".join(text.split())).replace("``", "`")
    parts = text.split("`")
    # Only what is outside of backticks is Markdown.
    parts[::2] = [re.sub(r"([<*\[\]$])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def code(text: str) -> str:
    """Text between backticks."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def block(text: str, language: str = "text") -> str:
    """A fenced block, longer than any fence in the text."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))
