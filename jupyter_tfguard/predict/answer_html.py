"""An answer as HTML for a notebook: the verdict, a bar of the parts against the available memory, and what to change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..units import human_bytes

# Colours of JupyterLab, each with one for other front ends.
_COLOURS = (
    "var(--jp-brand-color1, #1976d2)",
    "var(--jp-accent-color1, #388e3c)",
    "var(--jp-warn-color1, #f57c00)",
    "var(--jp-info-color1, #0097a7)",
    "var(--jp-ui-font-color3, #9e9e9e)",
)
_VERDICT_COLOURS = {
    "FITS": "var(--jp-success-color1, #388e3c)",
    "TIGHT": "var(--jp-warn-color1, #f57c00)",
    "TOO_LARGE": "var(--jp-error-color1, #d32f2f)",
    "UNKNOWN": "var(--jp-ui-font-color2, #616161)",
}
_MARK = "var(--jp-ui-font-color1, #000)"
_BAR = "display:flex;height:14px;border-radius:2px;overflow:hidden;background:var(--jp-layout-color3,#e0e0e0)"


def as_html(
    headline: str,
    verdict: str,
    parts: Sequence[tuple[str, int]],
    available_bytes: int,
    advice: Iterable[str],
    notes: Iterable[str],
) -> str:
    """HTML of the parts of an answer; all texts are escaped.

    Args:
        headline: One sentence.
        verdict: Name of a verdict, for the colour.
        parts: Bytes by part.
        available_bytes: Where the bar has a mark.
        advice: Items of a list.
        notes: Sentences below it.
    """
    items = "".join(f"<li>{escape(one)}</li>" for one in advice)
    changes = f'<ul style="margin:6px 0 6px 18px">{items}</ul>' if items else ""
    rest = "".join(f'<p style="margin:4px 0">{escape(one)}</p>' for one in notes)
    return (
        '<div class="jp-TfGuard-Estimate" style="max-width:640px">'
        f'<p style="margin:0 0 6px;padding-left:8px;border-left:4px solid {_VERDICT_COLOURS[verdict]}">'
        f"<b>{escape(headline)}</b></p>"
        f"{_bar(parts, available_bytes)}{_legend(parts, available_bytes)}{changes}{rest}</div>"
    )


def _bar(parts: Sequence[tuple[str, int]], available_bytes: int) -> str:
    total = max(available_bytes, sum(size for _, size in parts), 1)
    pieces = "".join(
        f'<div title="{escape(name)}: {human_bytes(size)}" '
        f'style="width:{100 * size / total:.2f}%;background:{_colour(place)}"></div>'
        for place, (name, size) in enumerate(parts)
    )
    mark = (
        f'<div title="available: {human_bytes(available_bytes)}" style="position:absolute;top:-3px;height:20px;'
        f"width:2px;left:calc({100 * available_bytes / total:.2f}% - 2px);"
        f'background:{_MARK}"></div>'
    )
    return f'<div style="position:relative;margin:8px 0"><div style="{_BAR}">{pieces}</div>{mark}</div>'


def _legend(parts: Sequence[tuple[str, int]], available_bytes: int) -> str:
    marks = [(9, _colour(place), *part) for place, part in enumerate(parts)]
    marks.append((2, _MARK, "available", available_bytes))
    entries = "".join(
        f'<span style="margin-right:14px;white-space:nowrap"><span style="display:inline-block;width:{width}px;'
        f'height:9px;margin-right:4px;background:{colour}"></span>{escape(name)} {human_bytes(size)}</span>'
        for width, colour, name, size in marks
    )
    return f'<div style="line-height:1.6">{entries}</div>'


def _colour(place: int) -> str:
    return _COLOURS[min(place, len(_COLOURS) - 1)]
