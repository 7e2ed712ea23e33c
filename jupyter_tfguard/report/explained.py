"""What a pasted log tells, as JSON and as text: there is no kernel, no time and no memory curve, only texts."""

from __future__ import annotations

import textwrap
from typing import Any

from ..diagnosis.finding import Diagnosis, Finding
from ..redact import printable, redact
from .text import WIDTH

Json = dict[str, Any]


def to_json(diagnosis: Diagnosis) -> Json:
    """``{"findings": [...], "unchecked": [...]}``, the best finding first; secrets are taken out."""
    return {
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "unchecked": list(diagnosis.not_checked),
    }


def _finding(finding: Finding) -> Json:
    return {
        "cause": finding.cause,
        "confidence": finding.confidence.value,
        "title": finding.title,
        "because": [
            {"source": fact.source.value, "line": fact.line, "text": redact(fact.text)}
            for fact in finding.because
        ],
        "against": [
            {"source": fact.source.value, "line": fact.line, "text": redact(fact.text)}
            for fact in finding.against
        ],
        "advice": [
            {"title": a.title, "text": redact(a.text), "code": a.code} for a in finding.advice
        ],
    }


def render(explained: Json) -> str:
    """The same for people, from what :func:`to_json` made."""
    best, *others = explained["findings"]
    sections = [
        ("How we know", [_fact(fact) for fact in best["because"]] or ["  No line settles it."]),
        ("What speaks against it", [_fact(fact) for fact in best["against"]]),
        ("What to do", _advice(best["advice"])),
        ("Also possible", [f"  {o['cause']} ({o['confidence']}): {o['title']}" for o in others]),
        ("Not checked", [_wrapped(text, "  ") for text in explained["unchecked"]]),
    ]
    head = f"{_wrapped(best['title'], '')}\n{_sure(best)}"
    parts = [head, *(f"{title}\n" + "\n".join(lines) for title, lines in sections if lines)]
    return printable("\n\n".join(parts)) + "\n"


def _sure(finding: Json) -> str:
    cause, confidence = finding["cause"], finding["confidence"]
    return str(cause if cause == "unknown" else f"{cause} ({confidence})")


def _fact(fact: Json) -> str:
    where = f"line {fact['line']}" if fact["line"] else fact["source"]
    return _wrapped(fact["text"], " " * 15, first=f"  {where:<12} ")


def _advice(advice: list[Json]) -> list[str]:
    lines = []
    for number, step in enumerate(advice, 1):
        lines.append(f"  {number}. {step['title']}")
        if step["text"]:
            lines.append(_wrapped(step["text"], "     "))
        if step["code"]:
            lines.append(f"         {step['code']}")
    return lines


def _wrapped(text: str, indent: str, *, first: str | None = None) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
