"""Other backends of Keras than TensorFlow. `tests/rigs/backends.py` runs the real ones."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import ml_dtypes
import numpy
import pytest

from jupyter_tfguard.guard import stops
from jupyter_tfguard.guard.dispatched import STILL_RUNS, wait_for_jax
from jupyter_tfguard.guard.error import HostMemoryLimitReached
from jupyter_tfguard.guard.model_state import host_array
from jupyter_tfguard.guard.snapshot import Snapshot
from jupyter_tfguard.guard.stop_texts import CellFacts
from jupyter_tfguard.guard.stops import Stops, WatchedCell
from jupyter_tfguard.memory.limits import Limit, LimitKind
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


class Tensor:
    """Behaves like a parameter of PyTorch: NumPy can read it only after `detach`."""

    def __init__(self, array: Any, *, is_free: bool = False) -> None:
        self._array, self._is_free = array, is_free

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self) -> Tensor:
        return Tensor(self._array, is_free=True)

    def cpu(self) -> Tensor:
        return self

    def contiguous(self) -> Tensor:
        return self

    def element_size(self) -> int:
        return int(self._array.dtype.itemsize)

    def view(self, dtype: str) -> Tensor:
        return Tensor(self._array.view(dtype), is_free=self._is_free)

    def numpy(self) -> Any:
        if not self._is_free or self._array.dtype.kind == "V":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array


@pytest.mark.parametrize("kind", ["float32", "int64", ml_dtypes.bfloat16])
def test_a_parameter_of_torch_is_read(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    dtypes = types.SimpleNamespace(uint8="uint8", int16="int16")
    monkeypatch.setitem(sys.modules, "torch", dtypes)  # type: ignore[arg-type]
    array = numpy.arange(6).astype(kind).reshape(2, 3)
    variable = types.SimpleNamespace(value=Tensor(array), dtype=array.dtype.name)
    found = host_array(variable)
    assert found.dtype == array.dtype
    assert numpy.array_equal(found, array)


class Dispatched:
    """An array of JAX whose computation ends when it is let."""

    def __init__(self, ends: threading.Event) -> None:
        self._ends = ends

    def block_until_ready(self) -> None:
        self._ends.wait()


def test_work_of_jax_is_waited_for_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = threading.Event()
    deleted = types.SimpleNamespace()  # without the method, like one that fails
    jax = types.SimpleNamespace(live_arrays=lambda: [deleted, Dispatched(ends)])
    bridge = types.SimpleNamespace(_backends={})
    monkeypatch.setitem(sys.modules, "jax", jax)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)  # type: ignore[arg-type]
    assert wait_for_jax(0.0)  # no device is open yet, and none is opened
    bridge._backends["cpu"] = None
    monkeypatch.setattr(stops, "wait_for_jax", lambda: wait_for_jax(0.01))
    made = Stops(lambda added: CellFacts(), lambda: Limit(GIB, LimitKind.HOST))
    stop = made.reached(Snapshot(trip_count=1, trip_available_bytes=MIB), WatchedCell(GIB))
    error = HostMemoryLimitReached(stop.text)
    made.will_show(error)
    assert STILL_RUNS in str(error)
    assert made.last is not None
    assert STILL_RUNS in made.last.text
    ends.set()
    assert wait_for_jax(60)
    error = HostMemoryLimitReached(stop.text)
    made.will_show(error)
    assert STILL_RUNS not in str(error)


def test_without_jax_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert wait_for_jax(0.0)
