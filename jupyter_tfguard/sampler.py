"""Reads all metrics from the collectors at one moment."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Protocol

from .errors import SourceUnavailable
from .metrics import Metric, Sample


class Collector(Protocol):
    """Reads one source of metrics."""

    metrics: tuple[Metric, ...]

    def collect(self) -> dict[str, float]:
        """Value per metric name; raises SourceUnavailable if the source cannot be read now."""
        ...

    def close(self) -> None:
        """Close descriptors."""
        ...


class Sampler:
    """Takes samples from several collectors.

    Args:
        collectors: Called in this order; the sampler closes them.

    Attributes:
        metrics: All metrics of all collectors.
        unavailable: Reason of the first failure of a source, by collector class name.
    """

    def __init__(self, collectors: Sequence[Collector]) -> None:
        self._collectors = tuple(collectors)
        self._sequence = itertools.count(1)
        self.metrics = tuple(metric for c in self._collectors for metric in c.metrics)
        self.unavailable: dict[str, str] = {}

    def tick(self) -> Sample:
        """Take one sample. A source that fails leaves its metrics unknown."""
        values: dict[str, float] = {}
        for collector in self._collectors:
            try:
                values |= collector.collect()
            except SourceUnavailable as gone:
                self.unavailable.setdefault(type(collector).__name__, str(gone))
        return Sample(next(self._sequence), time.monotonic(), time.time(), values)

    def close(self) -> None:
        """Close the collectors."""
        for collector in self._collectors:
            collector.close()
