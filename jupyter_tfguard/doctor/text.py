"""Formats the results of the checks: problems first, then passed checks, then the counts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from .check import CheckResult, Status

_MARKS = {Status.PROBLEM: "✕", Status.WARNING: "▲", Status.UNKNOWN: "?", Status.OK: "✓"}
_WIDTH = 98
_KEPT = "\xa0"


def text(results: Sequence[CheckResult]) -> str:
    """A paragraph with the fix for each result that is not ok; only the names of the others (texts: ``--json``)."""
    order = list(_MARKS)
    ranked = sorted(results, key=lambda result: order.index(result.status))
    wrong = [line for r in ranked if r.status is not Status.OK for line in _lines(r)]
    # Lines do not break inside a name.
    names = ", ".join(r.name.replace(" ", _KEPT) for r in ranked if r.status is Status.OK)
    fine = [
        line.replace(_KEPT, " ")
        for line in _wrapped(f"{_MARKS[Status.OK]} {names}" if names else "")
    ]
    parts = ("\n".join(wrong), "\n".join(fine), _summary(results))
    return "\n\n".join(part for part in parts if part)


def _lines(result: CheckResult) -> list[str]:
    unknown = f"{result.status.value}: " if result.status is Status.UNKNOWN else ""
    lines = _wrapped(f"{_MARKS[result.status]} {result.name}: {unknown}{result.text}")
    return lines if result.fix is None else [*lines, f"    fix: {result.fix}"]


def _wrapped(line: str) -> list[str]:
    # A path broken over two lines can be neither read nor copied.
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _summary(results: Sequence[CheckResult]) -> str:
    found = [result.status for result in results]
    parts = []
    for status, one, several in (
        (Status.PROBLEM, "problem", "problems"),
        (Status.WARNING, "warning", "warnings"),
        (Status.UNKNOWN, "could not be checked", "could not be checked"),
        (Status.OK, "ok", "ok"),
    ):
        if count := found.count(status):
            parts.append(f"{count} {one if count == 1 else several}")
    return ", ".join(parts)
