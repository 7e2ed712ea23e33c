"""The table of ``%tfguard cells``: which cells took memory, and what they left behind."""

from __future__ import annotations

from collections.abc import Sequence

from ..redact import one_line
from ..units import human_bytes, human_seconds
from .cells import EndedCell

SHOWN = 10
_HEAD_CHARACTERS = 40
_NOTE = "Peak: how far memory rose above its start. Kept: how much more there was at the end."
_Row = list[str]


def cells_text(ended: Sequence[EndedCell]) -> str:
    """The ended cells of this kernel, the ten with the largest rise, largest first; a sentence when there is none."""
    if not ended:
        return "No cell has ended since tfguard began to watch this kernel."
    shown = sorted(ended, key=lambda cell: -cell.memory.rise_bytes)[:SHOWN]
    heads = any(cell.head is not None for cell in shown)
    gpu = any(cell.memory.gpu_end_bytes is not None for cell in shown)
    titles = ["cell", *(["source"] if heads else []), "time", "host peak", "host kept"]
    titles += ["GPU peak", "GPU kept"] if gpu else []
    lines = _aligned([titles, *(_row(cell, heads=heads, gpu=gpu) for cell in shown)], heads=heads)
    lines.append(_NOTE)
    if len(shown) < len(ended):
        lines.append(f"The {len(shown)} of {len(ended)} cells that rose most.")
    return "\n".join(lines)


def _row(cell: EndedCell, *, heads: bool, gpu: bool) -> _Row:
    memory = cell.memory
    number = "[ ]" if cell.count is None else f"[{cell.count}]"
    row = [number, *([_head(cell.head)] if heads else []), human_seconds(cell.seconds)]
    row += [_signed(memory.host_peak_bytes), _signed(memory.host_kept_bytes)]
    return row + ([_signed(memory.gpu_peak_bytes), _signed(memory.gpu_kept_bytes)] if gpu else [])


def _head(head: str | None) -> str:
    text = one_line(head or "")
    return text if len(text) <= _HEAD_CHARACTERS else text[: _HEAD_CHARACTERS - 1] + "…"


def _signed(number: int | None) -> str:
    text = human_bytes(number)
    return f"+{text}" if number is not None and number > 0 else text


def _aligned(rows: list[_Row], *, heads: bool) -> list[str]:
    """Columns: the cell and its source to the left, numbers to the right."""
    left = 2 if heads else 1
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
