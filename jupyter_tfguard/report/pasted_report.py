"""Recognises our own reports among pasted texts: their answer is repeated, and their words are not read as a log.

People paste what ``why`` printed, "Copy as Markdown", ``report.md``, ``report.json`` and the output of ``explain``. All have a headline
``cause (confidence)`` below the title, and the sections "What to do" and "How we know".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from ..decode import list_of
from ..diagnosis.finding import Confidence, Source
from ..diagnosis.rule import all_rules
from ..redact import redact
from . import documents

Json = dict[str, Any]
IS_REPORT = "This text is a report of jupyter-tfguard. Its answer is repeated here; the text was not read as a log."
_LIMIT = 400
_MOST = 40
_QUOTE = re.compile(r"^\s{0,12}(?:> ?){0,4}")
# gpu_oom (likely) · SIGABRT · train.ipynb      unknown
_HEADLINE = re.compile(
    r"^(?P<cause>[a-z][a-z_]{3,40})(?: \((?P<confidence>certain|likely|possible)\))?(?: · .{0,600})?$"
)
_SECTIONS = ("What to do", "How we know", "Not checked", "Evidence against it")
_STEP = re.compile(r"^ {2}\d\. (?P<title>.+)$")


def pasted_report(text: str) -> Json | None:
    """The answer of the report as :class:`documents.Explanation`; None for a text that is no report."""
    found = _of_json(text) if text.lstrip()[:1] == "{" else _of_text(text)
    if found is None:
        return None
    cause, confidence, title, because, advice = found
    explanation: documents.Explanation = {
        "schema_version": 1,
        "findings": [
            {
                "cause": cause,
                "confidence": confidence,
                "title": redact(title[:_LIMIT]),
                "evidence": [_fact(Source.TEXT.value, IS_REPORT), *because[:_MOST]],
                "against": [],
                "advice": advice[:_MOST],
            }
        ],
        "not_checked": [],
    }
    return cast(Json, explanation)


_Found = tuple[str, str, str, list[documents.LogFact], list[documents.Advice]]


def _of_json(text: str) -> _Found | None:
    """A ``report.json``, an answer of ``why --json`` or ``explain --json``."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    findings = value.get("findings")
    if isinstance(findings, list) and findings and isinstance(findings[0], dict):
        value = findings[0]
    cause, title = value.get("cause"), value.get("title")
    if cause not in _causes() or not isinstance(title, str):
        return None
    because = [
        _fact(Source.TEXT.value, fact["text"], fact.get("raw"))
        for fact in _dicts(value.get("evidence"))
        if isinstance(fact.get("text"), str)
    ]
    advice = [
        _advice(step["title"], step.get("text"), step.get("code"))
        for step in _dicts(value.get("advice"))
        if isinstance(step.get("title"), str)
    ]
    return cause, _confidence(value.get("confidence")), title, because, advice


def _of_text(text: str) -> _Found | None:
    if not all(section in text for section in _SECTIONS[:2]):
        return None
    lines = [
        _QUOTE.sub("", line, count=1) if line.lstrip().startswith(">") else line
        for line in text.split("\n")
    ]
    lines = [line.rstrip() for line in lines]
    heads = {line.strip() for line in lines if line.strip() in _SECTIONS}
    if len(heads) < 2 or "How we know" not in heads:
        return None
    causes = _causes()
    for place, line in enumerate(lines):
        hit = _HEADLINE.match(line.strip())
        if hit is None or hit["cause"] not in causes:
            continue
        title: list[str] = []
        before = place - 1 if place and not lines[place - 1].strip() else place
        for earlier in reversed(lines[max(0, before - 6) : before]):
            if not earlier.strip() or earlier.lstrip().startswith("```"):
                break
            title.insert(0, earlier.strip())
        if title:
            confidence = _confidence(hit["confidence"])
            facts = [
                _fact(Source.TEXT.value, fact)
                for fact in _paragraphs(_section(lines, place, "How we know"))
            ]
            return (
                hit["cause"],
                confidence,
                " ".join(title),
                facts,
                _steps(_section(lines, place, "What to do")),
            )
    return None


def _section(lines: Sequence[str], place: int, name: str) -> list[str]:
    """The lines of a section after the headline; it ends with an empty line."""
    begin = next((n for n in range(place, len(lines)) if lines[n].strip() == name), None)
    if begin is None:
        return []
    end = next((n for n in range(begin, len(lines)) if not lines[n].strip()), len(lines))
    margin = len(lines[begin]) - len(lines[begin].lstrip())
    return [line[margin:] for line in lines[begin + 1 : end]]


def _paragraphs(lines: Sequence[str]) -> list[str]:
    """Each fact with its source before it and its continuation lines."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" " * 14) and found:
            found[-1] += f" {line.strip()}"
        else:
            found.append(" ".join(line.split()))
    return found


def _steps(lines: Sequence[str]) -> list[documents.Advice]:
    """The numbered steps. A title ends with its sentence; code is indented by nine spaces."""
    found: list[list[str]] = []
    for line in lines:
        if (step := _STEP.match(line)) is not None:
            found.append([step["title"], "", ""])
        elif found and line.startswith(" " * 9):
            found[-1][2] += f"{line[9:]}\n"
        elif found and not found[-1][0].endswith((".", "?", ":")):
            found[-1][0] += f" {line.strip()}"
        elif found:
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
    return [_advice(title, text, code.rstrip("\n") or None) for title, text, code in found]


def _causes() -> set[object]:
    return {rule.cause for rule in all_rules()}


def _confidence(value: object) -> str:
    known = {confidence.value for confidence in Confidence}
    return value if isinstance(value, str) and value in known else Confidence.POSSIBLE.value


def _dicts(value: object) -> list[Json]:
    return [item for item in list_of(value) if isinstance(item, dict)]


def _fact(source: str, text: str, raw: object = None) -> documents.LogFact:
    return {
        "source": source,
        "line": None,
        "text": redact(text[:_LIMIT]),
        "raw": redact(raw[:_LIMIT]) if isinstance(raw, str) else None,
    }


def _advice(title: str, text: object, code: object) -> documents.Advice:
    return {
        "title": redact(title[:_LIMIT]),
        "text": redact(text[:1000]) if isinstance(text, str) else "",
        "code": redact(code[:1000]) if isinstance(code, str) else None,
    }
