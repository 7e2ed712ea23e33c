"""Sizes of what lies at the top level of a notebook, told without work."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.kernel.cells.arrays import Sizes, largest_arrays, newest

pytestmark = pytest.mark.quick


def sizes(**names: Any) -> dict[str, int]:
    return {array["name"]: array["bytes"] for array in largest_arrays(names)}


def test_only_arrays_are_measured() -> None:
    found = sizes(
        a=np.ones(3), b=[1] * 1000, c={"x": np.ones(9)}, d="text", e=np.float64(1), f=None
    )
    assert found == {"a": 24}


def test_what_is_in_a_file_holds_no_memory(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "mapped", dtype="float64", mode="w+", shape=(1000,))
    assert sizes(mapped=mapped, own=np.ones(2)) == {"own": 16}


def test_strange_values_are_left_out() -> None:
    class Hostile:
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("looked at")

    assert sizes(hostile=Hostile(), own=np.ones(2)) == {"own": 16}


def test_the_newest_names_count() -> None:
    names = {f"n{i}": np.ones(50_000 - i) for i in range(2000)}
    assert [array["name"] for array in largest_arrays(names)] == [
        f"n{i}" for i in range(1500, 1505)
    ]


def test_pandas_frames_are_measured_narrow_and_wide() -> None:
    pandas = pytest.importorskip("pandas")
    narrow = pandas.DataFrame({"a": np.ones(100), "b": np.ones(100, "int32")})
    wide = pandas.DataFrame(np.ones((10, 500)))
    assert sizes(n=narrow, w=wide, s=narrow["a"]) == {"w": 40_000, "n": 1200, "s": 800}


def test_names_of_ipython_are_left_out() -> None:
    own = ("_own", "_i_own", "__own", "_x1")
    theirs = (
        "_",
        "__",
        "___",
        "_7",
        "_i",
        "_ii",
        "_iii",
        "_i7",
        "_oh",
        "_dh",
        "_ih",
        "In",
        "Out",
        "__doc__",
    )
    assert len(newest(dict.fromkeys(own + theirs))) == len(own)


def test_arrays_of_jax_and_images_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    class ArrayImpl:
        nbytes = 4096

        def __init__(self, platform: str) -> None:
            self.platform = platform

        def devices(self) -> list[Any]:
            return [self]

    class Image:
        size, mode = (100, 50), "RGB"
        _im: Any = None

    ArrayImpl.__module__ = "jaxlib._jax"
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(Array=object))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "PIL.Image", SimpleNamespace(Image=Image))  # type: ignore[arg-type]
    here, there, image = ArrayImpl("cpu"), ArrayImpl("gpu"), Image()
    assert [Sizes(gpu=False).of(one) for one in (here, there, image)] == [4096, 0, 0]
    assert [Sizes(gpu=True).of(one) for one in (here, there)] == [0, 4096]
    image._im = object()
    assert Sizes().of(image) == 20_000
