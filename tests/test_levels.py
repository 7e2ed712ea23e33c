"""The levels at which a cell is stopped."""

from __future__ import annotations

import pytest

from jupyter_tfguard.levels import Levels
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


def test_levels_are_a_few_percent_of_the_limit() -> None:
    levels = Levels.of(2 * GIB)
    assert 0.022 < levels.stop_bytes / (2 * GIB) < 0.023
    assert 0.029 < levels.stop_cap_bytes / (2 * GIB) < 0.031
    assert 0.0099 < levels.reserve_bytes / (2 * GIB) < 0.0101


@pytest.mark.parametrize(
    ("total", "stop", "cap", "reserve"),
    [(256 * MIB, 32, 48, 16), (512 * GIB, 512, 1024, 256)],
    ids=["a small container", "a large machine"],
)
def test_levels_have_bounds(total: int, stop: int, cap: int, reserve: int) -> None:
    levels = Levels.of(total)
    found = (levels.stop_bytes, levels.stop_cap_bytes, levels.reserve_bytes)
    assert found == (stop * MIB, cap * MIB, reserve * MIB)


def test_a_nearly_full_kernel_can_still_run_small_cells() -> None:
    levels = Levels.of(2 * GIB).for_cell(60 * MIB)
    assert (levels.stop_bytes, levels.stop_cap_bytes) == (20 * MIB, 30 * MIB)
    assert levels.reserve_bytes == 60 * MIB // 8


def test_an_empty_kernel_has_the_levels_of_its_limit() -> None:
    assert Levels.of(2 * GIB).for_cell(int(1.8 * GIB)) == Levels.of(2 * GIB)
