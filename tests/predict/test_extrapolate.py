"""The arithmetic of predictions from smaller batches."""

from __future__ import annotations

import pytest

from jupyter_tfguard.predict.batches import rounded_down
from jupyter_tfguard.predict.extrapolate import extrapolate, smaller_batches

pytestmark = pytest.mark.quick


def test_one_point_off_the_line_does_not_bend_it() -> None:
    line = {2: 120, 16: 260, 32: 420, 64: 740}
    assert extrapolate(line, 128) == 1380
    assert extrapolate(line | {32: 600}, 128) == pytest.approx(1380, rel=0.05)


def test_a_quick_estimate_is_moved_by_its_median_error() -> None:
    assert extrapolate({8: 110, 16: 220, 32: 550}, 64, lambda size: 10.0 * size) == 640 + 60
    assert extrapolate({8: 0}, 1, lambda size: 10.0 * size) == 0


def test_smaller_batches_are_different_and_in_order() -> None:
    assert smaller_batches(64) == (2, 8, 16, 32)
    assert smaller_batches(8) == (1, 2, 4)
    assert smaller_batches(1) == ()


@pytest.mark.parametrize(("size", "round_size"), [(0, 1), (1, 1), (5, 4), (7, 6), (127, 96)])
def test_round_sizes_have_two_binary_digits(size: int, round_size: int) -> None:
    assert rounded_down(size) == round_size
