"""What others may do around a run of ``fit``, ``evaluate`` or ``predict``."""

from __future__ import annotations

from typing import Any

from .progress import FitProgress


class FitHooks:
    """Does nothing: each run is as it would be without the guard."""

    def refusal(self, what: str, arguments: dict[str, Any], model: Any) -> BaseException | None:
        """Called before a run: an exception to raise in its place."""

    def begins(self, model: Any, progress: FitProgress) -> None:
        """Called before Keras' own code runs."""

    def ends(
        self, error: BaseException | None, model: Any, progress: FitProgress
    ) -> BaseException | None:
        """Called when the run has ended.

        Args:
            error: What ended it; None for nothing.

        Returns:
            The exception to raise: mostly the same.
        """
        return error
