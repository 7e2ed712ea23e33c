"""A report as plain text: first the headline, then what to do, then how we know. Markdown has this text in a code block."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from ..redact import printable
from ..units import UNKNOWN_TEXT, human_bytes, local_time
from .frames import short_frames
from .memory import memory_sentence

WIDTH = 100
_BARS = "▁▂▃▄▅▆▇█"
_NATIVE_LINES = 12
_STACK_LINES = 14
_LINE_WIDTH = 200


def render(report: dict[str, Any], *, whole: bool = False) -> str:
    """What ``jupyter tfguard why`` prints.

    Args:
        whole: Print all lines of the stderr tail, all frames, and the versions.
    """
    native, stack = report["stderr_tail"], report["python_stack"]
    versions = [f"{name} {version}" for name, version in report["versions"].items()]
    if not whole:
        native = [line[:_LINE_WIDTH] for line in native[-_NATIVE_LINES:]]
        stack = short_frames(stack, WIDTH)[:_STACK_LINES]
        versions = []
    parts = ["\n".join(wrapped(str(report["title"]), "")), _headline(report)]
    if unsaved := report.get("unsaved"):
        parts.append("\n".join(wrapped(str(unsaved), "")))
    sections: list[tuple[str, list[str]]] = [
        ("What to do", advice_lines(report["advice"])),
        ("What you were doing", [_row(r["label"], r["value"]) for r in report["activity"]]),
        ("Memory", _memory(report)),
        (
            "Machine and guard",
            [f"  {r['label']:<15}{r['value']}" for r in report.get("setting") or ()],
        ),
        ("How we know", fact_lines(report["evidence"])),
        ("Evidence against it", fact_lines(report["against"]) or ["  Nothing found."]),
        (
            "Not checked",
            [line for text in report["not_checked"] for line in wrapped(text, "  ")]
            or ["  Everything relevant was checked."],
        ),
        ("Other findings", _others(report["other_findings"])),
        ("Checkpoint and metrics", _left(report)),
        ("Largest arrays when the last cell ended", _arrays(report)),
        ("Last lines of stderr", [f"  {line}" for line in native]),
        ("Python stack trace", [f"  {line}" for line in stack]),
        ("Versions", wrapped(", ".join(versions), "  ") if versions else []),
        ("What the causes mean", _causes(report.get("causes") or [])),
    ]
    parts += [f"{title}\n" + "\n".join(lines) for title, lines in sections if lines]
    # The report was cleaned when it was written, but any program of this user can write to the store.
    return printable("\n\n".join(parts)) + "\n"


def markdown(report: dict[str, Any]) -> str:
    """The whole text as a code block, for an issue or a chat, so that Markdown and HTML do not interpret it."""
    text = render(report, whole=True)
    # The fence is longer than any run of backquotes in the text, so that the text cannot end the block.
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}{fence}\n"


def cause_text(finding: dict[str, Any]) -> str:
    """``gpu_oom (likely)``."""
    cause = str(finding["cause"])
    return cause if cause == "unknown" else f"{cause} ({finding['confidence']})"


def _headline(report: dict[str, Any]) -> str:
    facts = [
        cause_text(report),
        *report["chips"],
        report.get("notebook_path") or "",
        local_time(report["crashed_at"]),
    ]
    return " · ".join(dict.fromkeys(fact for fact in facts if fact)) + f"\nreport {report['id']}"


def _row(label: str, value: str) -> str:
    return f"  {label:<12}{value}"


def _causes(pages: list[dict[str, Any]]) -> list[str]:
    lines = []
    for page in pages:
        lines += [f"  {page['cause']}", *wrapped(page["means"], "    ")]
        lines += wrapped(f"Recognised: {page['recognised']}", "    ")
    return lines


def fact_lines(facts: list[dict[str, Any]]) -> list[str]:
    """Facts, each with its source before it and the log line that it is based on below it."""
    lines = []
    for fact in facts:
        first, *rest = wrapped(fact["text"], " " * 14)
        lines += [f"  {fact['source']:<11} {first.strip()}", *rest]
        if raw := fact.get("raw"):
            lines += wrapped(raw, " " * 16)
    return lines


def _memory(report: dict[str, Any]) -> list[str]:
    sentence = memory_sentence(report)
    if sentence is None:
        return []
    memory = report["memory"]
    values = [value for _, value in memory["samples"]]
    top = max([*values, memory["limit_bytes"] or 0])
    stretch = max(1, -(-len(values) // 60))
    peaks = [max(values[i : i + stretch]) for i in range(0, len(values), stretch)]
    bars = "".join(_BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] for value in peaks)
    return [f"  {bars}", f"  {sentence}"]


def advice_lines(steps: list[dict[str, Any]]) -> list[str]:
    """The steps of "What to do", numbered."""
    lines = []
    for number, advice in enumerate(steps, 1):
        first, *rest = wrapped(advice["title"], " " * 5)
        lines += [f"  {number}. {first.strip()}", *rest]
        if advice["text"]:
            lines += wrapped(advice["text"], "     ")
        if advice["code"]:
            lines += [f"         {line}" for line in advice["code"].splitlines()]
    return lines


def _others(findings: list[dict[str, Any]]) -> list[str]:
    """The other findings, each with its evidence and the first step of its advice."""
    lines = []
    for finding in findings:
        lines += wrapped(f"{finding['title']} {cause_text(finding)}", "  ")
        # Reports of older versions and counted crashes contain only the title.
        lines += [f"  {line}" for line in fact_lines(finding.get("evidence") or [])]
        lines += [f"  {line}" for line in advice_lines((finding.get("advice") or [])[:1])]
    return lines


def _left(report: dict[str, Any]) -> list[str]:
    lines = []
    checkpoint, metrics = report["left"]["checkpoint"], report["left"]["metrics"]
    if checkpoint:
        written = checkpoint["written_at"]
        when = f", written {local_time(written)}" if written else ""
        lines.append(f"  last checkpoint: {checkpoint['path']}{when}")
        if doubt := checkpoint.get("doubt"):
            lines.append(f"  {doubt}")
        if code := checkpoint.get("resume_code"):
            lines += ["  to resume from it:", *(f"      {line}" for line in code.splitlines())]
    if metrics:
        columns = metrics["columns"]
        lines.append("  " + "".join(f"{name:>16}" for name in columns))
        for epoch, *numbers in metrics["rows"][-8:]:
            cells = "".join(f"{_number(n):>16}" for n in numbers)
            lines.append(f"  {epoch:>16}{cells}")
    return lines


def _number(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or UNKNOWN_TEXT
    return format(value, ".5g")


def _arrays(report: dict[str, Any]) -> list[str]:
    return [f"  {human_bytes(a['bytes']):>10}  {a['name']}" for a in report["arrays"]]


def wrapped(text: str, indent: str) -> list[str]:
    """The text in lines of at most :data:`WIDTH`."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]
