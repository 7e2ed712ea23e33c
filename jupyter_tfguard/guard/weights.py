"""Refuses a weight of a model, or a slot of its optimizer, that cannot fit into memory: its size is known before.

Keras makes a weight in one operation of TensorFlow, during which nothing can be stopped. Covers Keras 3 and Keras 2 with
TensorFlow on the CPU. Does not cover weights made without a layer, such as ``tf.Variable``.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeGuard

from ..predict.own_memory import device_types, free_in_pool, runs_in_this_process
from ..shield import shielded
from ..training.growth import gpu_present, gpus_hidden
from ..units import MIB, human_bytes
from .memory_guard import MemoryGuard

# Smaller weights are left to the sampler.
_LARGE_BYTES = 16 * MIB
# TensorFlow scales and shifts what its generator has made, each into a new tensor. Peak of the pool for each random initializer
# of Keras 2.15 and 3.15: 3 times the size, 4 for Orthogonal.
_RANDOM_COPIES = 3
_RANDOM = "RandomInitializer"
_RANDOM_NAMES = ("random", "truncated", "variance", "glorot", "he_", "lecun", "orthogonal")
_DEFAULT = "glorot_uniform"
# In Keras 2 the random initializers have no base class of their own.
_RANDOM_2 = frozenset(
    {"RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling", "Orthogonal"}
)


class Weight(NamedTuple):
    """A weight that is about to be made.

    Attributes:
        what: For the message: ``weight kernel of layer dense (Dense)``.
        shape: Lengths of its axes.
        dtype: Name of its type.
        initializer: Fills it; None if unknown.
    """

    what: str
    shape: tuple[int, ...]
    dtype: str
    initializer: Any = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the weight itself."""
        return math.prod(self.shape) * _item_bytes(self.dtype)

    @property
    def need_bytes(self) -> int:
        """Lower bound of the memory that is needed to make it."""
        return self.size_bytes * (_RANDOM_COPIES if _is_random(self.initializer) else 1)

    def text(self, available_bytes: int, limit_bytes: int) -> str:
        """Why it is refused, and what to do."""
        needs = (
            ""
            if self.need_bytes == self.size_bytes
            else (f", and making it takes at least {human_bytes(self.need_bytes)}")
        )
        return (
            f"tfguard refused the {self.what}: its shape {self.shape} of {self.dtype} is {human_bytes(self.size_bytes)}"
            f"{needs}; {human_bytes(available_bytes)} are available (limit {human_bytes(limit_bytes)}). "
            "Make this layer smaller. To make it anyway, enter %tfguard pause first."
        )


class WeightGuard:
    """Checks each large weight before Keras makes it.

    Args:
        guard: The memory guard of this kernel.
    """

    def __init__(self, guard: MemoryGuard) -> None:
        self._guard = guard
        self._replaced: list[tuple[type, str, Any]] = []

    def attach(self) -> None:
        """Attach to each Keras that is imported; idempotent."""
        for name in ("keras", "tf_keras"):
            keras = sys.modules.get(name)
            if _is_imported(keras):
                with shielded("checking weights"):
                    self._attach(keras)

    def _attach(self, keras: ModuleType) -> None:
        self._replace(_defining(keras.layers.Layer, "add_weight"), "add_weight", _layer_weight)
        name = "add_variable_from_reference"
        self._replace(_defining(keras.optimizers.Optimizer, name), name, _slot)

    def detach(self) -> None:
        """Restore the methods of Keras."""
        for owner, name, original in self._replaced:
            setattr(owner, name, original)
        self._replaced.clear()

    def _replace(self, owner: type | None, name: str, describe: Callable[..., Weight]) -> None:
        if owner is None or any(done is owner for done, _, _ in self._replaced):
            return
        original = vars(owner)[name]
        signature = inspect.signature(original)

        @functools.wraps(original)
        def checked(self_: Any, /, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            refused = None
            with shielded("size of a weight"):
                refused = self._refusal(describe, signature, self_, args, kwargs)
            if refused is not None:
                raise refused
            return original(self_, *args, **kwargs)

        setattr(owner, name, checked)
        self._replaced.append((owner, name, original))

    def _refusal(
        self,
        describe: Callable[..., Weight],
        signature: inspect.Signature,
        owner: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> BaseException | None:
        guard = self._guard
        if not guard.is_watching:
            return None
        try:
            weight = describe(owner, signature.bind(owner, *args, **kwargs).arguments)
        except (TypeError, ValueError, AttributeError):
            return None  # a wrong argument, for which Keras has a better error
        if weight.size_bytes < _LARGE_BYTES or weight.need_bytes <= guard.available_bytes():
            return None
        if not _on_host():
            return None
        guard.give_back()  # an earlier model is often in reference cycles
        available = guard.available_bytes()
        if not any(guard.parts.get(part, "") is None for part in ("pool", "tensorflow")):
            available += free_in_pool()
        if weight.need_bytes <= available:
            return None
        return guard.refuse(weight.text(available, guard.limit().size_bytes), "refused")


def _is_imported(keras: ModuleType | None) -> TypeGuard[ModuleType]:
    """False while the import is in progress, which imports TensorFlow."""
    return hasattr(getattr(keras, "layers", None), "Layer") and hasattr(
        getattr(keras, "optimizers", None), "Optimizer"
    )


def _defining(owner: type, name: str) -> type | None:
    return next((one for one in owner.__mro__ if name in vars(one)), None)


def _layer_weight(layer: Any, given: dict[str, Any]) -> Weight:
    # Keras 3.15 takes `shape, initializer, dtype` as `*args`.
    first = dict(zip(("shape", "initializer", "dtype"), given.get("args", ()), strict=False))
    given = first | {name: one for name, one in given.items() if one is not None}
    dtype = given.get("dtype") or getattr(layer, "variable_dtype", None) or "float32"
    name = given.get("name") or "kernel"
    return Weight(
        f"weight {name} of layer {layer.name} ({type(layer).__name__})",
        _shape(given.get("shape")),
        _dtype_name(dtype),
        given.get("initializer", _DEFAULT if "float" in str(dtype) else None),
    )


def _slot(optimizer: Any, given: dict[str, Any]) -> Weight:
    weight: Any = given.get("reference_variable", given.get("model_variable"))
    name = given.get("name") or given.get("variable_name") or "slot"
    return Weight(
        f"{name} of optimizer {type(optimizer).__name__} for weight {weight.name}",
        _shape(given.get("shape") or weight.shape),
        _dtype_name(weight.dtype),
    )


def _shape(shape: Any) -> tuple[int, ...]:
    if shape is None:
        return ()
    return tuple(int(length) for length in ((shape,) if isinstance(shape, int) else shape))


def _dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))


def _item_bytes(dtype: str) -> int:
    """Bytes of one element: the digits at the end of the name are bits."""
    digits = "".join(char for char in dtype if char.isdigit())
    if dtype.startswith("float8"):
        return 1
    return max(1, int(digits) // 8) if digits else 1


def _is_random(initializer: Any) -> bool:
    if isinstance(initializer, str):
        return initializer.startswith(_RANDOM_NAMES)
    names = {kind.__name__ for kind in type(initializer).__mro__}
    return _RANDOM in names or bool(names & _RANDOM_2)


def _on_host() -> bool:
    """True if TensorFlow makes the weight in this process, in the memory of the machine. Creates no device."""
    found = device_types()
    if not found:  # no operation has run yet
        return runs_in_this_process(None) and (not gpu_present() or gpus_hidden(os.environ))
    return found == {"CPU"} and runs_in_this_process(None) and not _has_strategy()


def _has_strategy() -> bool:
    tensorflow = sys.modules.get("tensorflow")
    return bool(tensorflow is not None and tensorflow.distribute.has_strategy())
