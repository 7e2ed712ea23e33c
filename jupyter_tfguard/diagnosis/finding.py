"""What a diagnosis says: causes, how sure it is, how it knows, what to do."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Confidence(enum.Enum):
    """How sure a finding is.

    CERTAIN: an exit status or counter that the watcher itself saw, and that fits nothing else.
    LIKELY: it fits, and nothing else that could be checked does. POSSIBLE: it fits.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """0 for the surest."""
        return list(Confidence).index(self)


class Source(enum.Enum):
    """Who says a fact."""

    SERVER = "server"
    KERNEL = "kernel"
    SYSTEM_LOG = "system log"
    TEXT = "pasted text"


@dataclass(frozen=True)
class Fact:
    """One piece of evidence, as a sentence.

    Attributes:
        line: Its number in a pasted text.
        raw: The line of a log that it rests on, as it was written; None where it rests on none.
    """

    source: Source
    text: str
    line: int | None = None
    raw: str | None = None


_RAW_LIMIT = 400


def quoted(text: str, raw: str, source: Source = Source.SYSTEM_LOG) -> Fact:
    """A fact that rests on one line of a log.

    Args:
        text: What the line says, as a sentence.
        raw: The line; it is cut where it is very long.
    """
    return Fact(source, text, raw=" ".join(raw.split())[:_RAW_LIMIT])


@dataclass(frozen=True)
class Advice:
    """One thing to do: a short order, its reason with numbers, and code for this very run where there is some."""

    title: str
    text: str = ""
    code: str | None = None


@dataclass(frozen=True)
class Finding:
    """One cause.

    Attributes:
        cause: The label; set by the rule that found it.
        confidence: How sure.
        title: One plain sentence that a tired person understands.
        short_title: The same in two to five words, for lists.
        because: The evidence for it.
        against: Evidence that contradicts it.
        advice: What to do, the most effective first, at most three.
        chips: Short facts shown beside the confidence.
        beside: It explains how things came to this, or what else was wrong, and not the end itself: it stands behind all
            findings that do, `unknown` included.
        mechanism: Of a leak: how it came to an end for want of memory, as the beginning of a sentence.
    """

    confidence: Confidence
    title: str
    short_title: str
    because: tuple[Fact, ...]
    against: tuple[Fact, ...] = ()
    advice: tuple[Advice, ...] = ()
    chips: tuple[str, ...] = ()
    beside: bool = False
    mechanism: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All findings, best first (never empty: `unknown` is one), and what could not be checked."""

    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...]

    @property
    def best(self) -> Finding:
        """The finding that explains the rest."""
        return self.findings[0]
