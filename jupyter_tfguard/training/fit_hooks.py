"""Hooks around a run of ``fit``, ``evaluate`` or ``predict``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plan import FitPlan
    from .progress import FitProgress


class FitHooks:
    """The default hooks, which do nothing."""

    def refusal(self, what: str, plan: FitPlan, model: Any) -> BaseException | None:
        """Called before a run; returns an exception to raise instead of running, or None."""

    def begins(self, model: Any, progress: FitProgress) -> None:
        """Called before Keras starts the run."""

    def ends(
        self, error: BaseException | None, model: Any, progress: FitProgress
    ) -> BaseException | None:
        """Called when the run has ended.

        Args:
            error: The exception that ended the run; None if it succeeded.

        Returns:
            The exception to raise, usually `error` itself.
        """
        return error
