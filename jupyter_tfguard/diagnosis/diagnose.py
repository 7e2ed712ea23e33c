"""Run the rules, rank the findings and list the evidence that could not be checked."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..record.bundle import check_format
from .evidence import Evidence
from .exit_status import ExitStatus
from .finding import Confidence, Diagnosis, Fact, Finding, Source
from .missing import missing
from .pasted import Pasted
from .rule import Rule, all_rules

_OUT_OF_MEMORY = ("cgroup_oom", "cpu_alloc_failure", "gpu_oom", "host_oom")
_MOST_ADVICE = 3
_ORDERLY = ("no_crash", "sys_exit", "terminated_by_user_or_manager", "unknown")
# Signals with which each cause ends a process; a launcher may replace any of them by its own exit code.
_SIGNALS = {
    "host_oom": ("SIGKILL",),
    "cgroup_oom": ("SIGKILL",),
    "sigkill_unattributed": ("SIGKILL",),
    "glibc_abort_heap_corruption": ("SIGABRT", "SIGSEGV"),
    "segfault_native": ("SIGSEGV", "SIGBUS"),
    "bus_error_shm": ("SIGBUS",),
    "illegal_instruction": ("SIGILL", "SIGABRT"),
    "libiomp_duplicate": ("SIGABRT",),
    "tf_check_failed": ("SIGABRT", "SIGTRAP", "SIGILL", "SIGSEGV"),
}


def diagnose(bundle: dict[str, Any]) -> Diagnosis:
    """Why this kernel died, from the bundle alone.

    Raises:
        RecordUnreadable: The bundle does not state its format. RecordTooNew: The format has a newer major version.
    """
    check_format(bundle)
    return _judged(Evidence(bundle))


def explain(pasted: Pasted) -> Diagnosis:
    """What a pasted log shows, without any recording."""
    return _judged(Evidence({}, pasted))


def _judged(seen: Evidence) -> Diagnosis:
    found = _findings(seen, last=False)
    seen.cause = _ranked(found)[0].cause
    ranked = _ranked(found + _findings(seen, last=True))
    ranked[0] = _with_mechanism(ranked)
    if seen.pasted is not None:
        ranked[0] = _weighed_against(seen.pasted.status, ranked[0])
    needs = dict.fromkeys(need for rule in all_rules() for need in rule.needs)
    absent = (missing(seen, need) for need in needs)
    return Diagnosis(tuple(ranked), tuple(dict.fromkeys(text for text in absent if text)))


def _with_mechanism(ranked: list[Finding]) -> Finding:
    """The best finding. If a leak led to the lack of memory, the finding starts with the leak and how to stop it."""
    best = ranked[0]
    leak = next((finding for finding in ranked[1:] if finding.mechanism), None)
    if leak is None or best.cause not in _OUT_OF_MEMORY:
        return best
    advice = tuple(dict.fromkeys((*leak.advice[:1], *best.advice)))[:_MOST_ADVICE]
    title = f"{leak.mechanism}, until {best.title[0].lower()}{best.title[1:]}"
    return dataclasses.replace(best, title=title, advice=advice)


def _weighed_against(status: ExitStatus | None, best: Finding) -> Finding:
    """The finding. If the reported exit status contradicts it, this fact is added and the finding is not certain."""
    text = None if status is None else _contradiction(status, best.cause)
    if text is None:
        return best
    sure = Confidence.LIKELY if best.confidence is Confidence.CERTAIN else best.confidence
    against = (*best.against, Fact(Source.TEXT, f"As reported: {text}"))
    return dataclasses.replace(best, against=against, confidence=sure)


def _contradiction(status: ExitStatus, cause: str) -> str | None:
    fitting = _SIGNALS.get(cause)
    if cause in _ORDERLY:
        return None
    if status.code == 0:
        return "exit code 0, but a program with this cause never exits with 0"
    if status.signal is not None and fitting is not None and status.signal not in fitting:
        return f"{status.text}, but this cause ends a process by {' or '.join(fitting)}"
    return None


def _findings(seen: Evidence, *, last: bool) -> list[tuple[Rule, Finding]]:
    judged = ((rule, rule.judge(seen)) for rule in all_rules() if rule.last is last)
    return [
        (rule, dataclasses.replace(finding, cause=rule.cause))
        for rule, finding in judged
        if finding is not None
    ]


def _ranked(found: list[tuple[Rule, Finding]]) -> list[Finding]:
    """Order the findings: those that no other finding explains, by confidence; then the explained; then side findings.

    `unknown` is dropped if any finding explains the end. A finding that a certain one explains is dropped too: it
    describes the same end with less evidence.
    """
    if any(rule.cause != "unknown" and not finding.beside for rule, finding in found):
        found = [pair for pair in found if pair[0].cause != "unknown"]
    settled = {
        cause
        for rule, finding in found
        for cause in rule.outranks
        if finding.confidence is Confidence.CERTAIN and not finding.beside
    }
    found = [pair for pair in found if pair[0].cause not in settled]
    explained = {cause for rule, finding in found for cause in rule.outranks if not finding.beside}
    by_rank = sorted(
        found,
        key=lambda pair: (
            pair[1].beside,
            pair[0].cause in explained,
            pair[1].confidence.rank,
            pair[0].cause,
        ),
    )
    return [finding for _, finding in by_rank]
