"""The findings of a pasted log as JSON and as text."""

from __future__ import annotations

from typing import Any, cast

from ..diagnosis.finding import Diagnosis, Fact, Finding
from ..redact import printable, redact
from . import documents
from .text import advice_lines, cause_text, fact_lines, wrapped

Json = dict[str, Any]


def to_json(diagnosis: Diagnosis) -> Json:
    """The diagnosis as :class:`documents.Explanation`, the best finding first; secrets are removed."""
    found: documents.Explanation = {
        "schema_version": 1,
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "not_checked": list(diagnosis.not_checked),
    }
    return cast(Json, found)


def _finding(finding: Finding) -> documents.LogFinding:
    return {
        "cause": finding.cause,
        "confidence": finding.confidence.value,
        "title": finding.title,
        "evidence": _facts(finding.because),
        "against": _facts(finding.against),
        "advice": [
            {"title": a.title, "text": redact(a.text), "code": a.code} for a in finding.advice
        ],
    }


def _facts(facts: tuple[Fact, ...]) -> list[documents.LogFact]:
    return [
        {
            "source": fact.source.value,
            "line": fact.line,
            "text": redact(fact.text),
            "raw": redact(fact.raw) if fact.raw is not None else None,
        }
        for fact in facts
    ]


def render(explained: Json) -> str:
    """The result of :func:`to_json` as plain text."""
    best, *others = explained["findings"]
    sections = [
        ("What to do", advice_lines(best["advice"])),
        (
            "How we know",
            fact_lines(_with_lines(best["evidence"]))
            or ["  No line of the text decides the cause."],
        ),
        ("Evidence against it", fact_lines(_with_lines(best["against"]))),
        ("Also possible", [f"  {cause_text(other)}: {other['title']}" for other in others]),
        ("Not checked", [line for t in explained["not_checked"] for line in wrapped(t, "  ")]),
    ]
    head = "\n".join([*wrapped(best["title"], ""), cause_text(best)])
    parts = [head, *(f"{title}\n" + "\n".join(lines) for title, lines in sections if lines)]
    return printable("\n\n".join(parts)) + "\n"


def _with_lines(facts: list[Json]) -> list[Json]:
    """The facts, with the line number as source if they are about a line of the pasted text."""
    return [{**f, "source": f"line {f['line']}"} if f["line"] else f for f in facts]
