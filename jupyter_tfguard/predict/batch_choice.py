"""The result of a search for the largest batch, and its text for the user."""

from __future__ import annotations

from dataclasses import dataclass

from ..batch_place import IN_ARGUMENT, BatchPlace
from ..units import human_bytes
from .trial import Trial


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
