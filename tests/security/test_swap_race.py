"""A part of the race of `tests/rigs/swap_race.py`: files and folders swapped while they are used, and nothing gets out."""

from __future__ import annotations

import sys

import pytest

from tests.rigs.swap_race import race


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")
@pytest.mark.parametrize("seed", [1, 2])
def test_no_swap_lets_a_byte_out(seed: int) -> None:
    told = race(10_000, seed)
    assert told["escapes"] == []
    assert told["swaps"] >= 10_000
    assert told["worked"] > 100
    assert told["refused"] > 100
