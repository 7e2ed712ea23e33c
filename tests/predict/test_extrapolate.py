"""The arithmetic of predictions from smaller batches."""

from __future__ import annotations

import numpy as np
import pytest

from jupyter_tfguard.predict.trial.extrapolate import extrapolate, quick_of_trial, smaller_batches
from jupyter_tfguard.training.plan import FitPlan, rounded_down

pytestmark = pytest.mark.quick


def test_one_point_off_the_line_does_not_bend_it() -> None:
    line = {2: 120, 16: 260, 32: 420, 64: 740}
    assert extrapolate(line, 128) == 1380
    assert extrapolate(line | {32: 600}, 128) == pytest.approx(1380, rel=0.05)


def test_a_line_corrects_the_quick_estimate() -> None:
    # At small batches the estimate is too high, at large ones too low.
    assert extrapolate({8: 50, 16: 150, 32: 350}, 64, lambda size: 10.0 * size) == 750
    assert extrapolate({8: 110}, 64, lambda size: 10.0 * size) == 670
    assert extrapolate({8: 0}, 1, lambda size: 10.0 * size) == 0


def test_two_similar_batches_do_not_turn_the_line() -> None:
    measured = {8: 80, 30: 300, 31: 340}
    assert extrapolate(measured, 64, lambda size: 10.0 * size) == pytest.approx(710, rel=0.05)
    assert extrapolate({30: 420, 32: 300}, 64, lambda size: 10.0 * size) > 500
    assert extrapolate({30: 300, 32: 420}, 64, lambda size: 10.0 * size) < 900


def test_a_trial_is_not_expected_to_copy_the_arrays_that_it_lacks() -> None:
    plan = FitPlan.of({"x": np.zeros((1000, 10), "float64")})
    in_trial = quick_of_trial(lambda size: 100_000.0, plan)
    assert in_trial is not None
    # The copy of 1000 samples has 40 kB; a trial of batch 5 copies 30 of them.
    assert in_trial(5) == 100_000 - 40_000 * 970 // 1000
    assert in_trial(500) == 100_000


def test_smaller_batches_are_different_and_in_order() -> None:
    assert smaller_batches(64) == (2, 8, 16, 32)
    assert smaller_batches(8) == (1, 2, 4)
    assert smaller_batches(1) == ()


@pytest.mark.parametrize(("size", "round_size"), [(0, 1), (1, 1), (5, 4), (7, 6), (127, 96)])
def test_round_sizes_have_two_binary_digits(size: int, round_size: int) -> None:
    assert rounded_down(size) == round_size
