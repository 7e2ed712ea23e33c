"""A page for every cause: from its rule, from the table of messages, and from the examples that the tests use."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from jupyter_tfguard.diagnosis.catalog import table as facts
from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.diagnosis.finding import Advice, Confidence, Finding
from jupyter_tfguard.diagnosis.missing import missing
from jupyter_tfguard.diagnosis.rule import Rule, all_rules
from jupyter_tfguard.report import explained, text
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import Example, TextExample, examples, text_examples

from .markdown import block, code, prose, table

WATCHED, RECORDED, PASTED = (
    "A watcher in the Jupyter server saw the end",
    "Only the kernel's own recording is left",
    "A log was pasted into `explain`",
)
_NAMING = ("settles", "names", "degrades", "suggests", "ending", "fatal")


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of the page of each cause."""
    for rule in all_rules():
        yield f"causes/{rule.cause}.md", _page(rule)


def summary() -> str:
    """A table of all causes."""
    rows = []
    for rule in all_rules():
        surest = min(
            (one.finding.confidence for one in _seen(rule.cause)),
            key=lambda confidence: confidence.rank,
        )
        rows.append((_link(rule.cause), prose(_first_sentence(rule.means)), surest.value))
    return table(("cause", "what happened", "at best"), rows)


def _page(rule: Rule) -> str:
    seen = _seen(rule.cause)
    parts = [
        f"(cause-{rule.cause})=\n# `{rule.cause}`\n",
        prose(rule.means) + "\n",
        "## How it is recognised\n",
        prose(rule.recognised) + "\n",
        _needs(rule),
        _outranked(rule),
        "## How sure tfguard can be\n",
        table(
            ("what there is", "confidence"),
            [(where, _surest(seen, where)) for where in (WATCHED, RECORDED, PASTED)],
        ),
        "\nThese are the surest answers in the examples that the rule is tested with. "
        "{ref}`confidence` says what the words mean.\n",
        _fixes(seen),
        "## An example\n",
        block(_report(seen)),
        _lines(rule.cause),
    ]
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class _Seen:
    """One example, as it was judged."""

    where: str
    finding: Finding
    example: Example | TextExample


@functools.cache
def _all_seen() -> tuple[_Seen, ...]:
    found = []
    for example in examples("fires"):
        bundle = example.bundle
        if bundle.get("server"):
            found += [_Seen(WATCHED, one, example) for one in diagnose(bundle).findings]
        if bundle.get("kernel"):
            alone = bundle | {"server": None}
            found += [_Seen(RECORDED, one, example) for one in diagnose(alone).findings]
    for log in text_examples("fires"):
        found += [_Seen(PASTED, one, log) for one in explain(log.pasted).findings]
    return tuple(found)


def _seen(cause: str) -> list[_Seen]:
    """The findings of this cause in its own examples, the surest first."""
    ours = [one for one in _all_seen() if one.finding.cause == cause and one.example.cause == cause]
    return sorted(ours, key=_order)


def _order(one: _Seen) -> tuple[int, int, int]:
    """The surest first; of equals the one with a watcher, then the one with most to say."""
    finding = one.finding
    said = len(finding.because) + len(finding.advice)
    return finding.confidence.rank, (WATCHED, RECORDED, PASTED).index(one.where), -said


def _surest(seen: list[_Seen], where: str) -> str:
    found = [one.finding.confidence for one in seen if one.where == where]
    best: Confidence | None = min(found, key=lambda confidence: confidence.rank, default=None)
    return "not recognised" if best is None else best.value


def _needs(rule: Rule) -> str:
    """What the rule reads, in the words in which a report says that it was not there."""
    nothing = Evidence({})
    names = [(missing(nothing, need) or need).partition(":")[0] for need in rule.needs]
    listed = "".join(f"- {prose(name)}\n" for name in names)
    return f"The rule uses:\n\n{listed}" if listed else ""


def _outranked(rule: Rule) -> str:
    if not rule.outranks:
        return ""
    links = ", ".join(_link(cause) for cause in sorted(rule.outranks))
    return f"If it is found, it comes before these causes: {links}.\n"


def _fixes(seen: list[_Seen]) -> str:
    """The steps of all examples, in the order that reports have them on average."""
    advice: dict[str, Advice] = {}
    places: dict[str, list[int]] = defaultdict(list)
    for one in seen:
        for place, step in enumerate(one.finding.advice):
            key = re.sub(r"\d[\d.,]*", "N", step.title)
            advice.setdefault(key, step)
            places[key].append(place)
    if not advice:
        return ""
    items = []
    for key in sorted(advice, key=lambda key: (fmean(places[key]), -len(places[key]))):
        step = advice[key]
        item = f"1. **{prose(step.title)}** {prose(step.text)}".rstrip() + "\n"
        if step.code:
            indented = block(step.code.strip()).replace("\n", "\n   ").rstrip()
            item += f"\n   {indented}\n"
        items.append(item)
    note = "Numbers and names are those of the examples. A report uses those of your run.\n"
    return "\n".join(["## How to fix it\n", *items, note])


def _report(seen: list[_Seen]) -> str:
    """The report of the surest example, as a terminal shows it."""
    best = seen[0].example
    if isinstance(best, TextExample):
        return explained.render(explained.to_json(explain(best.pasted)))
    return text.render(to_report(best.bundle, diagnose(best.bundle)))


def _lines(cause: str) -> str:
    rows = [row for row in facts("messages")["message"] if row.get("cause") == cause]
    rows = [row for row in rows if row["role"] in _NAMING]
    if not rows:
        return ""
    shown = [
        ("<br>".join(code(needle) for needle in row["needles"]), prose(row["says"])) for row in rows
    ]
    head = "## Lines that point to it\n\nParts of messages that tfguard looks for in the stderr tail and in pasted logs.\n"
    return f"{head}\n{table(('a line with', 'says that'), shown)}"


def _link(cause: str) -> str:
    return f"[`{cause}`](#cause-{cause})"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]
