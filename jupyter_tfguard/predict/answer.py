"""The answers to "does this fit into memory?" and "which batch is the largest that fits?", as text and for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import TYPE_CHECKING

from ..batch_place import IN_ARGUMENT, BatchPlace
from ..memory.limits import Limit, LimitKind
from ..units import human_bytes

if TYPE_CHECKING:
    from .trial.trial import Trial


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
        available_bytes: What a cell can still use before the guard stops it.
        limit: The limit that binds; None if unknown.
        parts: Bytes by part, largest first.
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
    available_bytes: int
    limit: Limit | None
    parts: tuple[tuple[str, int], ...] = ()
    fitting_batch_size: int | None = None
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
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
        return _as_html(
            self.headline(),
            self.verdict.name,
            self.parts,
            self.available_bytes,
            self.advice(),
            notes,
        )


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """The result of a search.

    Attributes:
        batch_size: The largest batch size that fits; None if none does.
        peak_bytes: What it needs: measured by its trial, or extrapolated from smaller ones; None without a batch size.
        trials: All trials, in the order in which they were made. If the last one ended for another reason than memory,
            the search stopped there.
        available_bytes: What was available.
        place: Where the batch size of these data is set.
    """

    batch_size: int | None
    peak_bytes: int | None
    trials: tuple[Trial, ...]
    available_bytes: int
    place: BatchPlace = IN_ARGUMENT

    @property
    def was_tried(self) -> bool:
        """True if a trial of this batch size finished."""
        return any(one.finished and one.batch_size == self.batch_size for one in self.trials)

    def text(self) -> str:
        """The result for the user."""
        return "\n".join([self.headline(), *(f"  {_line(one)}" for one in self.trials)])

    def headline(self) -> str:
        """The batch size with its need, a line or two."""
        if self.batch_size is None:
            return "No batch size fits."
        subject = self.place.stated(self.batch_size).replace("a batch", "A batch")
        change = self.place.change("fit", self.batch_size)
        how = "" if self.place == IN_ARGUMENT else f"\nTo set it: {change}."
        need, available = human_bytes(self.peak_bytes), human_bytes(self.available_bytes)
        if self.was_tried:
            return f"{subject} is the largest that fits: it needed {need} of {available} available.{how}"
        tried = max((one for one in self.trials if one.finished), key=lambda one: one.batch_size)
        return (
            f"{subject} is the largest that should fit: it needs about {need} of {available} available.\n"
            f"It was not tried. batch_size={tried.batch_size} was, and needed {human_bytes(tried.peak_bytes)}.{how}"
        )

    def __repr__(self) -> str:
        return self.text()


def _line(one: Trial) -> str:
    return f"batch_size={one.batch_size}: {one.ending_text()}, {human_bytes(one.peak_bytes)}"


_VERDICTS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "may not fit",
    Verdict.TOO_LARGE: "does not fit",
    Verdict.UNKNOWN: "may fit",
}


# Colours of JupyterLab, each with one for other front ends.
_COLOURS = (
    "var(--jp-brand-color1, #1976d2)",
    "var(--jp-accent-color1, #388e3c)",
    "var(--jp-warn-color1, #f57c00)",
    "var(--jp-info-color1, #0097a7)",
    "var(--jp-ui-font-color3, #9e9e9e)",
)
_VERDICT_COLOURS = {
    "FITS": "var(--jp-success-color1, #388e3c)",
    "TIGHT": "var(--jp-warn-color1, #f57c00)",
    "TOO_LARGE": "var(--jp-error-color1, #d32f2f)",
    "UNKNOWN": "var(--jp-ui-font-color2, #616161)",
}
_MARK = "var(--jp-ui-font-color1, #000)"
_BAR = "display:flex;height:14px;border-radius:2px;overflow:hidden;background:var(--jp-layout-color3,#e0e0e0)"


def _as_html(
    headline: str,
    verdict: str,
    parts: Sequence[tuple[str, int]],
    available_bytes: int,
    advice: Iterable[str],
    notes: Iterable[str],
) -> str:
    """HTML of the parts of an answer; all texts are escaped.

    Args:
        headline: One sentence.
        verdict: Name of a verdict, for the colour.
        parts: Bytes by part.
        available_bytes: Where the bar has a mark.
        advice: Items of a list.
        notes: Sentences below it.
    """
    items = "".join(f"<li>{escape(one)}</li>" for one in advice)
    changes = f'<ul style="margin:6px 0 6px 18px">{items}</ul>' if items else ""
    rest = "".join(f'<p style="margin:4px 0">{escape(one)}</p>' for one in notes)
    return (
        '<div class="jp-TfGuard-Estimate" style="max-width:640px">'
        f'<p style="margin:0 0 6px;padding-left:8px;border-left:4px solid {_VERDICT_COLOURS[verdict]}">'
        f"<b>{escape(headline)}</b></p>"
        f"{_bar(parts, available_bytes)}{_legend(parts, available_bytes)}{changes}{rest}</div>"
    )


def _bar(parts: Sequence[tuple[str, int]], available_bytes: int) -> str:
    total = max(available_bytes, sum(size for _, size in parts), 1)
    pieces = "".join(
        f'<div title="{escape(name)}: {human_bytes(size)}" '
        f'style="width:{100 * size / total:.2f}%;background:{_colour(place)}"></div>'
        for place, (name, size) in enumerate(parts)
    )
    mark = (
        f'<div title="available: {human_bytes(available_bytes)}" style="position:absolute;top:-3px;height:20px;'
        f"width:2px;left:calc({100 * available_bytes / total:.2f}% - 2px);"
        f'background:{_MARK}"></div>'
    )
    return f'<div style="position:relative;margin:8px 0"><div style="{_BAR}">{pieces}</div>{mark}</div>'


def _legend(parts: Sequence[tuple[str, int]], available_bytes: int) -> str:
    marks = [(9, _colour(place), *part) for place, part in enumerate(parts)]
    marks.append((2, _MARK, "available", available_bytes))
    entries = "".join(
        f'<span style="margin-right:14px;white-space:nowrap"><span style="display:inline-block;width:{width}px;'
        f'height:9px;margin-right:4px;background:{colour}"></span>{escape(name)} {human_bytes(size)}</span>'
        for width, colour, name, size in marks
    )
    return f'<div style="line-height:1.6">{entries}</div>'


def _colour(place: int) -> str:
    return _COLOURS[min(place, len(_COLOURS) - 1)]
