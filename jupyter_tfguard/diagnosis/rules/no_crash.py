"""Nothing died of what a pasted log shows: alarming lines, and the program went on, or they are known to be harmless."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Fact, Finding, Source
from ..rule import rule
from ..told import told


@rule("no_crash")
def no_crash(seen: Evidence) -> Finding | None:
    text = told(seen, "no_crash")
    if text is None or seen.verdict is None:
        return None
    survived = {sign.row.id: sign for sign in reversed(seen.verdict.survived)}
    because = [
        Fact(Source.TEXT, f"{sign.line.message[:200]} ({sign.row.says})", sign.line.number)
        for sign in sorted(survived.values(), key=lambda sign: sign.index)[:5]
    ]
    if seen.verdict.line is not None:
        went_on = f"{seen.verdict.line.message[:200]} (the program went on)"
        because.append(Fact(Source.TEXT, went_on, seen.verdict.line.number))
    return Finding(
        text.confidence,
        title="Nothing in this text ended the program: the alarming lines are harmless, or were survived.",
        short_title="No crash",
        because=tuple(because),
        advice=(
            Advice(
                "If the kernel died nevertheless, its reason is not in this text.",
                "What was printed last, the exit code and the operating system's log would tell more.",
                "jupyter tfguard explain LOG --kernel-log KERNEL_LOG --exit-code N",
            ),
        ),
    )
