"""The simulated pool follows the rules of TensorFlow's allocator."""

from __future__ import annotations

import itertools
import random

import pytest

from jupyter_tfguard.predict.traced.pool import Pool

pytestmark = pytest.mark.quick
MIB = 1 << 20


def test_an_untouched_part_of_a_region_does_not_count() -> None:
    pool = Pool()
    pool.allocate(5 * MIB)  # in a region of 8 MiB
    assert pool.touched_bytes() == 5 * MIB


def test_free_memory_is_used_again() -> None:
    pool = Pool()
    for _ in range(10):
        pool.free(pool.allocate(3 * MIB))
    assert pool.touched_bytes() == 3 * MIB


def test_neighbors_that_are_free_are_merged() -> None:
    pool = Pool()
    parts = [pool.allocate(MIB) for _ in range(2)]  # both in the first region
    for part in parts:
        pool.free(part)
    whole = pool.allocate(2 * MIB)
    assert (whole.region, whole.start, pool.touched_bytes()) == (0, 0, 2 * MIB)


def test_the_smallest_chunk_that_is_large_enough_is_taken() -> None:
    pool = Pool()
    large, _, small, _ = (pool.allocate(size * MIB) for size in (9, 1, 5, 1))
    place = (small.region, small.start)
    pool.free(large)
    pool.free(small)
    found = pool.allocate(4 * MIB)
    assert (found.region, found.start) == place


@pytest.mark.parametrize(("size", "kept"), [(3 * MIB, 4 * MIB), (2 * MIB, 2 * MIB)])
def test_a_chunk_is_split_only_if_it_is_twice_too_large(size: int, kept: int) -> None:
    pool = Pool()
    pool.free(pool.allocate(4 * MIB))  # the region is 4 MiB
    assert pool.allocate(size).size == kept


def test_regions_double() -> None:
    pool = Pool()
    chunks = [pool.allocate(2 * MIB) for _ in range(4)]  # in regions of 2, 4 and 8 MiB
    assert [chunk.region for chunk in chunks] == [0, 1, 1, 2]


def test_random_use_loses_no_memory() -> None:
    chance = random.Random(0)
    pool = Pool()
    used = []
    for _ in range(2000):
        if used and chance.random() < 0.5:
            pool.free(used.pop(chance.randrange(len(used))))
        else:
            used.append(pool.allocate(chance.randrange(1, 4 * MIB)))
        places = sorted((one.region, one.start, one.size) for one in used)
        for first, second in itertools.pairwise(places):
            assert first[0] < second[0] or first[1] + first[2] <= second[1]
    for chunk in used:
        pool.free(chunk)
    assert sorted(start for _, _, start in pool._free) == [0] * len(pool._touched)
