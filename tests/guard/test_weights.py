"""Weights that cannot fit, with a stand-in of Keras: what is refused, what is left to Keras, and what is restored."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.guard import weights
from jupyter_tfguard.guard.error import HostMemoryLimitReached
from jupyter_tfguard.guard.weights import Weight, WeightGuard
from jupyter_tfguard.memory.limits import Limit, LimitKind
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


class Guard:
    """A guard with so much available."""

    def __init__(self, available: int) -> None:
        self.parts = {"pool": None}
        self.available, self.after, self.is_watching = available, available, True
        self.given_back = 0

    def available_bytes(self) -> int:
        return self.after if self.given_back else self.available

    def limit(self) -> Limit:
        return Limit(2 * GIB, LimitKind.HOST)

    def give_back(self) -> None:
        self.given_back += 1

    def refuse(self, text: str, what: str) -> BaseException:
        assert what == "refused"
        return HostMemoryLimitReached(text)


class RandomInitializer:
    """As in Keras."""


class GlorotUniform(RandomInitializer):
    """As in Keras."""


class Layer:
    name, variable_dtype = "dense_3", "float32"

    # As in Keras 3.15.
    def add_weight(
        self,
        *args: Any,
        shape: Any = None,
        initializer: Any = None,
        dtype: Any = None,
        name: Any = None,
    ) -> Any:
        return "made", args, shape


class Dense(Layer):
    pass


class Optimizer:
    def add_variable_from_reference(
        self, reference_variable: Any, name: Any = None, initializer: Any = "zeros"
    ) -> Any:
        return "made", reference_variable, name


class SGD(Optimizer):
    pass


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made: Any = ModuleType("keras")
    made.layers, made.optimizers = (
        SimpleNamespace(Layer=Layer),
        SimpleNamespace(Optimizer=Optimizer),
    )
    monkeypatch.setitem(sys.modules, "keras", made)
    monkeypatch.delitem(sys.modules, "tf_keras", raising=False)
    monkeypatch.setattr(weights, "_on_host", lambda: True)
    return made


def attached(guard: Guard) -> WeightGuard:
    made = WeightGuard(guard)  # type: ignore[arg-type]
    made.attach()
    made.attach()
    return made


def test_a_weight_that_cannot_fit_is_refused_with_its_layer_shape_and_size(
    keras: ModuleType,
) -> None:
    watching = attached(Guard(GIB))
    with pytest.raises(HostMemoryLimitReached) as refused:
        Dense().add_weight(name="kernel", shape=(20000, 20000), initializer=GlorotUniform())
    assert str(refused.value) == (
        "tfguard refused the weight kernel of layer dense_3 (Dense): its shape (20000, 20000) of float32 is 1.49 GiB, "
        "and making it takes at least 4.47 GiB; 1.00 GiB are available (limit 2.00 GiB). "
        "Make this layer smaller. To make it anyway, enter %tfguard pause first."
    )
    with pytest.raises(HostMemoryLimitReached, match=r"1\.49 GiB; 1\.00 GiB are available"):
        Dense().add_weight((20000, 20000), "zeros")
    watching.detach()
    assert Dense().add_weight((20000, 20000)) == ("made", ((20000, 20000),), None)


def test_a_slot_of_the_optimizer_is_refused_with_its_weight(keras: ModuleType) -> None:
    watching = attached(Guard(GIB))
    weight = SimpleNamespace(name="kernel", shape=(20000, 20000), dtype="float32")
    with pytest.raises(
        HostMemoryLimitReached, match="momentum of optimizer SGD for weight kernel: "
    ):
        SGD().add_variable_from_reference(weight, name="momentum")
    small = SimpleNamespace(name="kernel", shape=(2, 2), dtype="float32")
    assert SGD().add_variable_from_reference(small) == ("made", small, None)
    watching.detach()


def test_memory_that_can_be_given_back_counts_as_available(keras: ModuleType) -> None:
    guard = Guard(GIB)
    guard.after = 2 * GIB
    watching = attached(guard)
    assert Dense().add_weight(shape=(20000, 20000), initializer="zeros")[0] == "made"
    assert guard.given_back == 1
    Dense().add_weight(shape=(2000, 2000))
    assert guard.given_back == 1, "only if memory is short"
    watching.detach()


def test_what_is_wrong_or_not_watched_is_left_to_keras(keras: ModuleType) -> None:
    guard = Guard(GIB)
    watching = attached(guard)
    with pytest.raises(TypeError, match="unexpected keyword argument 'form'"):
        Dense().add_weight(form=(20000, 20000))
    assert Dense().add_weight(shape=(None, 20000))[0] == "made"
    guard.is_watching = False
    assert Dense().add_weight(shape=(20000, 20000))[0] == "made"
    watching.detach()


def test_a_keras_that_is_being_imported_is_left_alone(keras: ModuleType) -> None:
    original, optimizers = Layer.add_weight, keras.optimizers
    del keras.optimizers
    watching = attached(Guard(GIB))
    assert Layer.add_weight is original
    keras.optimizers = optimizers  # type: ignore[attr-defined]
    watching.attach()
    assert Layer.add_weight is not original
    watching.detach()
    assert Layer.add_weight is original


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float32", 4),
        ("bfloat16", 2),
        ("float8_e4m3fn", 1),
        ("int8", 1),
        ("bool", 1),
        ("complex64", 8),
    ],
)
def test_the_size_follows_from_shape_and_dtype(dtype: str, size: int) -> None:
    assert Weight("weight", (1024, 1024), dtype).size_bytes == size * MIB
