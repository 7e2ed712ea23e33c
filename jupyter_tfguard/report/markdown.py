"""A report as Markdown, to paste into an issue or a chat. Data stands in code spans and fences, so it stays data."""

from __future__ import annotations

import re
from typing import Any

from ..redact import printable
from .memory import memory_sentence
from .text import cause_text, local_time


def render(report: dict[str, Any]) -> str:
    """The whole report."""
    cause = report["cause"]
    sure = cause if cause == "unknown" else f"{cause}, {report['confidence']}"
    lines = [f"## {_plain(report['title'])}", ""]
    lines.append(
        f"{_code(sure)} · {_plain(local_time(report['died_at']))} · {_code(report.get('notebook_path') or 'no notebook')}"
    )
    _section(
        lines,
        "What you were doing",
        [f"- {_plain(r['label'])}: {_code(r['value'])}" for r in report["activity"]],
    )
    sentence = memory_sentence(report)
    _section(lines, "Memory", [_plain(sentence)] if sentence else [])
    _section(lines, "How we know", _facts(report["evidence"]))
    _section(lines, "What speaks against it", _facts(report["against"]) or ["Nothing found."])
    not_checked = [f"- {_plain(text)}" for text in report["not_checked"]]
    _section(lines, "Not checked", not_checked or ["Everything that applies was checked."])
    _section(lines, "What to do", _advice(report))
    _section(lines, "Also seen", _others(report["other_findings"]))
    _section(lines, "What is left", _left(report["left"]["checkpoint"]))
    _section(lines, "Last native words", _fence(report["native_tail"]))
    _section(lines, "Python stack", _fence(report["python_stack"]))
    versions = [
        f"- {_plain(str(name))} {_plain(str(version))}"
        for name, version in report["versions"].items()
    ]
    _section(lines, "Versions", versions)
    return "\n".join(lines) + "\n"


def _section(lines: list[str], title: str, body: list[str]) -> None:
    if body:
        lines += ["", f"### {title}", "", *body]


def _facts(facts: list[dict[str, Any]]) -> list[str]:
    lines = []
    for fact in facts:
        lines.append(f"- *{_plain(fact['source'])}*: {_plain(fact['text'])}")
        if raw := fact.get("raw"):
            lines.append(f"  {_code(raw)}")
    return lines


def _others(findings: list[dict[str, Any]]) -> list[str]:
    lines = []
    for finding in findings:
        lines.append(f"- {_plain(finding['title'])} {_code(cause_text(finding))}")
        # Reports of an older version and counted deaths tell the title alone.
        lines += [f"  {line}" for line in _facts(finding.get("evidence") or [])]
        lines += [
            f"  - to do: {_plain(step['title'])}" for step in (finding.get("advice") or [])[:1]
        ]
    return lines


def _advice(report: dict[str, Any]) -> list[str]:
    lines = []
    for number, advice in enumerate(report["advice"], 1):
        lines.append(f"{number}. **{_plain(advice['title'])}** {_plain(advice['text'])}".rstrip())
        if advice["code"]:
            lines += ["", *(f"   {line}" for line in _fence(advice["code"].splitlines())), ""]
    return lines


def _left(checkpoint: dict[str, Any] | None) -> list[str]:
    if checkpoint is None:
        return []
    lines = [f"- last checkpoint: {_code(checkpoint['path'])}"]
    if doubt := checkpoint.get("doubt"):
        lines[0] += f". {_plain(doubt)}"
    if code := checkpoint.get("resume_code"):
        lines += ["", "To go on from it:", "", *_fence(code.splitlines())]
    return lines


def _plain(text: str) -> str:
    """Text in which no character has a meaning for Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!&])", r"\\\1", " ".join(printable(text).split()))


def _code(text: str) -> str:
    """A code span; its fence is longer than any run of back-quotes inside."""
    flat = " ".join(printable(text).split()) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _fence(texts: list[str]) -> list[str]:
    if not texts:
        return []
    lines = [line for text in texts for line in printable(text).split("\n")]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence]
