"""The answer to "does this fit into memory?": need, available memory, verdict, and what to change, with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ..batch_place import IN_ARGUMENT, BatchPlace
from ..memory.limits import Limit, LimitKind
from ..units import human_bytes
from .answer_html import as_html


class Verdict(Enum):
    """Whether a fit fits into the available memory."""

    FITS = "fits"
    TIGHT = "tight"
    TOO_LARGE = "does not fit"
    UNKNOWN = "unknown"


class Grade(Enum):
    """How the need was found."""

    BOUND = "a lower bound, from known sizes"
    QUICK = "estimated from the traced training step"
    MEASURED = "measured by some steps in a child process"
    EXTRAPOLATED = "extrapolated from smaller batches in child processes"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that makes a fit smaller.

    Attributes:
        text: A sentence.
        saved_bytes: What it saves in this fit, at the peak.
    """

    text: str
    saved_bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """How much memory a fit needs, and whether that is available.

    Attributes:
        batch_size: Number of samples in a batch.
        grade: How the need was found.
        low_bytes: The fit rarely needs less memory, in addition to what is in use now.
        best_bytes: The most likely need; None if only a lower bound is known.
        high_bytes: The fit rarely needs more; None if only a lower bound is known.
        parts: Bytes by part, largest first.
        available_bytes: What a cell can still use before the guard stops it.
        limit: The limit that binds; None if unknown.
        fitting_batch_size: The largest batch size that should fit; None if none does or it is unknown.
        changes: What makes the fit smaller, largest saving first.
        notes: What the estimate does not know, a sentence each.
        place: Where the batch size is set.
    """

    batch_size: int
    grade: Grade
    low_bytes: int
    best_bytes: int | None
    high_bytes: int | None
    parts: tuple[tuple[str, int], ...]
    available_bytes: int
    limit: Limit | None
    fitting_batch_size: int | None
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    place: BatchPlace = IN_ARGUMENT

    @property
    def verdict(self) -> Verdict:
        """Compares the range with the available memory."""
        if self.low_bytes > self.available_bytes:
            return Verdict.TOO_LARGE
        if self.high_bytes is None:
            return Verdict.UNKNOWN
        return Verdict.FITS if self.high_bytes <= self.available_bytes else Verdict.TIGHT

    def headline(self) -> str:
        """The verdict with its numbers, one sentence."""
        on_gpu = self.limit is not None and self.limit.kind is LimitKind.GPU
        memory = "GPU memory" if on_gpu else "memory"
        if self.best_bytes is None or self.high_bytes is None:
            need = f"at least {human_bytes(self.low_bytes)} more {memory}"
        else:
            between = f"{human_bytes(self.low_bytes)} to {human_bytes(self.high_bytes)}"
            need = f"about {human_bytes(self.best_bytes)} more {memory} ({between})"
        limit = "" if self.limit is None else self.limit.text()
        available = f"{human_bytes(self.available_bytes)} is available"
        subject = self.place.stated(self.batch_size)
        subject = subject if "=" in subject else subject.capitalize()
        of_limit = f" of {limit}" if limit else ""
        return f"{subject} {_VERDICTS[self.verdict]}: fit() needs {need}; {available}{of_limit}."

    def advice(self) -> Iterator[str]:
        """What to change, a sentence each."""
        size = self.fitting_batch_size
        if size is not None and (self.verdict is not Verdict.FITS or size > self.batch_size):
            how = "" if self.place == IN_ARGUMENT else f": {self.place.change('fit', size)}"
            yield f"The largest batch size that should fit is {size}{how}."
        if self.verdict is Verdict.FITS:
            return
        for change in self.changes:
            yield f"{change.text} Saves about {human_bytes(change.saved_bytes)}."

    def text(self) -> str:
        """The whole answer as plain text."""
        lines = [self.headline(), f"How this was found: {self.grade.value}."]
        width = max((len(name) for name, _ in self.parts), default=0)
        lines += [f"  {name:{width}}  {human_bytes(size):>9}" for name, size in self.parts]
        lines += [f"- {one}" for one in self.advice()]
        lines += self.notes
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        notes = [*self.notes, f"How this was found: {self.grade.value}."]
        return as_html(
            self.headline(),
            self.verdict.name,
            self.parts,
            self.available_bytes,
            self.advice(),
            notes,
        )


_VERDICTS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "may not fit",
    Verdict.TOO_LARGE: "does not fit",
    Verdict.UNKNOWN: "may fit",
}
