"""The newest progress of a fit or training loop, as ``progress.ring`` has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .events import Count, Name


@dataclass(frozen=True)
class RecordedProgress:
    """Where a fit is. Unknown is None; epoch and step count from 1, times are Unix seconds.

    Attributes:
        what: ``fit``, ``evaluate``, ``predict``, or `LOOP`.
        active: It is running. refused: The guard refused it.
        steps_begun: Steps of all epochs so far, the running one included.
        validation_step: The step of the running validation; None outside of one.
        in_step: A step is running.
        logs: Numbers by name; NaN and infinite ones are kept.
    """

    fit_id: Count
    what: Name
    active: bool | None
    refused: bool | None
    model_name: Name
    parameter_count: Count
    optimizer: Name
    batch_size: Count
    epochs: Count
    epoch: Count
    steps: Count
    step: Count
    steps_begun: Count
    validation_step: Count
    in_step: bool | None
    steps_per_second: float | None
    logs: dict[str, Any] | None
    started: float | None
    ended: float | None
    time: float | None
