"""Runs the rules, ranks the findings, lists what was not checked."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..record.bundle import check_format
from .evidence import Evidence
from .finding import Diagnosis, Finding
from .pasted import Pasted
from .rule import Rule, all_rules


def diagnose(bundle: dict[str, Any]) -> Diagnosis:
    """Why this kernel died, from the bundle alone.

    Raises:
        RecordUnreadable: The bundle names no format. RecordTooNew: a newer major one.
    """
    check_format(bundle)
    return _judged(Evidence(bundle))


def explain(pasted: Pasted) -> Diagnosis:
    """What a pasted log tells, without any recording."""
    return _judged(Evidence({}, pasted))


def _judged(seen: Evidence) -> Diagnosis:
    found: list[tuple[Rule, Finding]] = []
    for rule in all_rules():
        finding = rule.judge(seen)
        if finding is not None:
            found.append((rule, dataclasses.replace(finding, cause=rule.cause)))
    ranked = _ranked(found)
    needs = dict.fromkeys(need for rule in all_rules() for need in rule.needs)
    missing = (seen.missing(need) for need in needs)
    return Diagnosis(tuple(ranked), tuple(dict.fromkeys(text for text in missing if text)))


def _ranked(found: list[tuple[Rule, Finding]]) -> list[Finding]:
    """Findings that no other one explains come first, the surest of them at the top; `unknown` only stands alone."""
    known = [(rule, finding) for rule, finding in found if rule.cause != "unknown"]
    found = known or found
    explained = {cause for rule, _ in found for cause in rule.outranks}
    by_rank = sorted(
        found, key=lambda pair: (pair[0].cause in explained, pair[1].confidence.rank, pair[0].cause)
    )
    return [finding for _, finding in by_rank]
