"""The parts of a diagnosis: cause, confidence, evidence and advice."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Confidence(enum.Enum):
    """How sure a finding is.

    CERTAIN: the watcher itself read an exit status or counter that has no other explanation.
    LIKELY: the cause fits, and no other cause that could be checked does. POSSIBLE: the cause fits.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """0 for the surest."""
        return list(Confidence).index(self)


class Source(enum.Enum):
    """Where a fact comes from."""

    SERVER = "server"
    KERNEL = "kernel"
    SYSTEM_LOG = "system log"
    TEXT = "pasted text"


@dataclass(frozen=True)
class Fact:
    """One piece of evidence, as a sentence.

    Attributes:
        line: Line number in a pasted text.
        raw: The unchanged log line that the fact is based on; None if it is not based on one.
    """

    source: Source
    text: str
    line: int | None = None
    raw: str | None = None


_RAW_LIMIT = 400


def quoted(text: str, raw: str, source: Source = Source.SYSTEM_LOG) -> Fact:
    """A fact that is based on one line of a log.

    Args:
        text: What the line says, as a sentence.
        raw: The line; a very long one is cut.
    """
    return Fact(source, text, raw=" ".join(raw.split())[:_RAW_LIMIT])


@dataclass(frozen=True)
class Advice:
    """One thing to do: a short instruction, its reason with numbers, and code for this run if there is some."""

    title: str
    text: str = ""
    code: str | None = None


@dataclass(frozen=True)
class Finding:
    """One cause.

    Attributes:
        cause: The label of the cause; set by the rule.
        confidence: How sure.
        title: One plain sentence.
        short_title: The same in two to five words, for lists.
        because: The evidence for it.
        against: Evidence that contradicts it.
        advice: What to do, the most effective first, at most three.
        chips: Short facts shown next to the confidence.
        beside: True if the finding explains the background, or another problem, but not the end itself. It comes after
            all findings that explain the end, `unknown` included.
        mechanism: For a leak: how the lack of memory ended the kernel, as the beginning of a sentence.
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
