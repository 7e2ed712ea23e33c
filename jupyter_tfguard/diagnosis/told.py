"""What rules quote from a text: the line that tells a cause, how it ended, and where Python was."""

from __future__ import annotations

from dataclasses import dataclass

from .ending import ending_chips, exit_fact, stack_facts
from .evidence import Evidence
from .finding import Advice, Confidence, Fact, Finding, Source, quoted
from .log_lines import LogLine
from .verdict import Verdict

_QUOTED = 400


@dataclass(frozen=True)
class Told:
    """A cause that a text tells.

    Attributes:
        confidence: How sure.
        facts: The evidence.
        chips: How it ended, in a few words.
        message: The line that tells it, without time stamp and file.
        details: Named parts of that line, as the table of messages names them.
    """

    confidence: Confidence
    facts: tuple[Fact, ...]
    chips: tuple[str, ...]
    message: str
    details: dict[str, str]

    def finding(self, *, title: str, short_title: str, advice: tuple[Advice, ...]) -> Finding:
        """The finding that rests on this text alone."""
        return Finding(
            self.confidence, title, short_title, because=self.facts, advice=advice, chips=self.chips
        )


def told(seen: Evidence, cause: str) -> Told | None:
    """What the text tells about a cause; None when it tells of another one, or of none."""
    verdict = seen.verdict
    if verdict is None or verdict.cause != cause:
        return None
    message = verdict.line.message if verdict.line is not None else ""
    details = dict(verdict.sign.details) if verdict.sign is not None else {}
    if seen.pasted is not None:
        chips = (seen.pasted.status.text,) if seen.pasted.status is not None else ()
        return Told(verdict.confidence, _pasted_facts(seen, verdict), chips, message, details)
    facts = [_native("Last native words", verdict.line)]
    if verdict.after is not None and verdict.after is not verdict.line:
        facts.append(_native("It gave up with", verdict.after))
    facts += [exit_fact(seen), *stack_facts(seen)]
    return Told(verdict.confidence, tuple(facts), ending_chips(seen), message, details)


def _native(says: str, line: LogLine | None) -> Fact:
    """A line that the kernel wrote; whole, where its time and file were left out of the sentence."""
    message = line.message if line is not None else ""
    text = f"{says}: {message[:_QUOTED]}"
    if line is None or line.text.strip() == message:
        return Fact(Source.KERNEL, text)
    return quoted(text, line.text, Source.KERNEL)


def _pasted_facts(seen: Evidence, verdict: Verdict) -> tuple[Fact, ...]:
    assert seen.pasted is not None
    survived = {sign.row.id: sign for sign in reversed(verdict.survived)}
    alarming = sorted(survived.values(), key=lambda sign: sign.index)[:5]
    facts = [_quoted(sign.line, sign.row.says) for sign in alarming]
    if verdict.line is not None:
        facts.append(_quoted(verdict.line, verdict.says))
    if verdict.after is not None:
        facts.append(_quoted(verdict.after, "a consequence"))
    if seen.pasted.status is not None:
        facts.append(Fact(Source.TEXT, f"As reported: {seen.pasted.status.text}"))
    if verdict.cause == "gpu_oom_other_process" and seen.story.starved_device is not None:
        line = seen.story.starved_device
        facts.insert(0, _quoted(line, "next to nothing was free when the program came"))
    return tuple(facts)


def _quoted(line: LogLine, says: str) -> Fact:
    text = " ".join(line.text.split())[:_QUOTED]
    return Fact(Source.TEXT, f"{text} ({says})" if says else text, line.number)
