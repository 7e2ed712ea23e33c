"""An answer as HTML for a notebook: the verdict, a bar of the parts against the available memory, and what to change."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ..units import human_bytes

if TYPE_CHECKING:
    from .answer import Answer

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
_BAR = "display:flex;height:14px;border-radius:2px;overflow:hidden;background:var(--jp-layout-color3,#e0e0e0)"


def html_of(answer: Answer) -> str:
    """The HTML of an answer; all texts are escaped."""
    colour = _VERDICT_COLOURS[answer.verdict.name]
    head = (
        f'<p style="margin:0 0 6px;padding-left:8px;border-left:4px solid {colour}">'
        f"<b>{escape(answer.headline())}</b></p>"
    )
    advice = "".join(f"<li>{escape(one)}</li>" for one in answer.advice())
    notes = "".join(f"<p style='margin:4px 0'>{escape(one)}</p>" for one in answer.notes)
    changes = f"<ul style='margin:6px 0 6px 18px'>{advice}</ul>" if advice else ""
    found = f"<p style='margin:4px 0'>Found by: {escape(answer.grade.value)}.</p>"
    return (
        f'<div class="jp-TfGuard-Estimate" style="max-width:640px">'
        f"{head}{_bar(answer)}{_legend(answer)}{changes}{notes}{found}</div>"
    )


def _bar(answer: Answer) -> str:
    total = max(answer.available_bytes, sum(size for _, size in answer.parts), 1)
    pieces = "".join(
        f'<div title="{escape(name)}: {human_bytes(size)}" '
        f'style="width:{100 * size / total:.2f}%;background:{_colour(place)}"></div>'
        for place, (name, size) in enumerate(answer.parts)
    )
    left = 100 * answer.available_bytes / total
    mark = (
        f'<div style="position:absolute;left:calc({left:.2f}% - 2px);top:-3px;height:20px;width:2px;'
        f'background:var(--jp-ui-font-color1,#000)" title="available: {human_bytes(answer.available_bytes)}"></div>'
    )
    return f'<div style="position:relative;margin:8px 0"><div style="{_BAR}">{pieces}</div>{mark}</div>'


def _legend(answer: Answer) -> str:
    rows = "".join(
        f'<span style="margin-right:14px;white-space:nowrap"><span style="display:inline-block;width:9px;height:9px;'
        f'margin-right:4px;background:{_colour(place)}"></span>{escape(name)} {human_bytes(size)}</span>'
        for place, (name, size) in enumerate(answer.parts)
    )
    return f'<div style="line-height:1.6">{rows}</div>'


def _colour(place: int) -> str:
    return _COLOURS[min(place, len(_COLOURS) - 1)]
