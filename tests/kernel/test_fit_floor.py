"""Memory that a fit keeps from step to step, and memory that each step needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jupyter_tfguard.kernel.cells import fit_floor
from jupyter_tfguard.kernel.cells.fit_floor import FitFloor
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


def rise(
    monkeypatch: pytest.MonkeyPatch, size: Callable[[int], float], samples: int = 100
) -> float:
    """The rise of a run of one step and two samples each 0.2 s; `size`: of each sample."""
    clock = [0.0]
    monkeypatch.setattr(fit_floor.time, "monotonic", lambda: clock[0])
    floor = FitFloor()
    for sample in range(samples):
        clock[0] += 0.1
        floor.sampled(size(sample), 1 + sample // 2)
    return floor.rise_bytes


def test_what_is_kept_at_each_step_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rise(monkeypatch, lambda sample: GIB + sample * 10 * MIB)
    assert found == pytest.approx(900 * MIB, rel=0.1)


@pytest.mark.parametrize(
    "size",
    [
        lambda sample: GIB + sample % 2 * 900 * MIB,  # what each step needs
        lambda sample: GIB + min(sample, 6) * 300 * MIB,  # the first steps fill the pool
        lambda sample: 2 * GIB - sample * MIB,
    ],
)
def test_what_each_step_needs_does_not(
    monkeypatch: pytest.MonkeyPatch, size: Callable[[int], float]
) -> None:
    assert rise(monkeypatch, size) <= 0


def test_in_the_first_steps_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rise(monkeypatch, lambda sample: sample * GIB, samples=9) == 0
