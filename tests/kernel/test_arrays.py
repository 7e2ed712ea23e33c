"""Sizes of what lies at the top level of a notebook, told without work."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.kernel.arrays import largest_arrays

pytestmark = pytest.mark.quick


def sizes(**names: Any) -> dict[str, int]:
    return {array["name"]: array["bytes"] for array in largest_arrays(names)}


def test_only_arrays_are_measured() -> None:
    found = sizes(
        a=np.ones(3), b=[1] * 1000, c={"x": np.ones(9)}, d="text", e=np.float64(1), f=None
    )
    assert found == {"a": 24}


def test_what_lies_in_a_file_holds_no_memory(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "mapped", dtype="float64", mode="w+", shape=(1000,))
    assert sizes(mapped=mapped, own=np.ones(2)) == {"own": 16}


def test_strange_values_are_left_out() -> None:
    class Hostile:
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("looked at")

    assert sizes(hostile=Hostile(), own=np.ones(2)) == {"own": 16}


def test_many_names_do_not_hold_up_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(step=0.0001)
    for clock in ("monotonic", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(now))
    names = {f"n{i}": np.ones(i % 100) for i in range(50_000)}
    found = largest_arrays(names)
    assert len(found) == 5
    assert next(now) < 1  # of 50,000 names few were looked at


def test_the_time_of_other_programs_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(step=0.005)
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    assert sizes(a=np.ones(1), b=np.ones(2), c=np.ones(3)) == {"c": 24, "b": 16, "a": 8}
    assert len(sizes(**{f"n{i}": np.ones(1) for i in range(100)})) < 6


def test_pandas_frames_are_measured_narrow_and_wide() -> None:
    pandas = pytest.importorskip("pandas")
    narrow = pandas.DataFrame({"a": np.ones(100), "b": np.ones(100, "int32")})
    wide = pandas.DataFrame(np.ones((10, 500)))
    assert sizes(n=narrow, w=wide, s=narrow["a"]) == {"w": 40_000, "n": 1200, "s": 800}
