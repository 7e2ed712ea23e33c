"""Sizes of values that are cheap to measure, and the largest arrays at the top level of the notebook.

Covers NumPy arrays, tensors and variables of TensorFlow and Keras, tensors of PyTorch, arrays of JAX, frames and series of
pandas, frames of polars, tables of PyArrow, images of Pillow, texts, bytes and buffers. Containers are measured in :mod:`~.measure`. No user code runs: types are compared, and
attributes of unknown types are not read.
"""

from __future__ import annotations

import array
import io
import itertools
import math
import re
import sys
from collections.abc import Collection
from typing import Any

# Each name adds a few microseconds to the cell.
_NAMES_LIMIT = 500
_TEXTS: tuple[type, ...] = (str, bytes, bytearray, io.BytesIO, io.StringIO, array.array)
# Inputs and results of earlier cells: In, Out, _, __, _12, _i, _i12, _oh; and Python's own names, such as __name__.
_OF_IPYTHON = re.compile(r"In|Out|exit|quit|_+|_i*\d*|_(?:[dios]h|exit_code)|__\w+__").fullmatch
_OBJECT_SAMPLE = 16
_TENSOR_KINDS = ("EagerTensor", "ResourceVariable", "Variable", "KerasVariable")
_TENSOR_MODULES = ("tensorflow.", "keras.src.", "tf_keras.src.")


def largest_arrays(namespace: dict[str, Any], count: int = 5) -> list[dict[str, Any]]:
    """The `count` largest arrays as ``{"name", "bytes"}``, largest first, among the newest 500 names.

    Args:
        namespace: The user's global names, newest last.
    """
    sizes = Sizes()
    if not sizes.any_library:
        return []
    found = [(size, name) for name, value in newest(namespace) if (size := sizes.of_array(value))]
    found.sort(reverse=True)
    return [{"name": name, "bytes": size} for size, name in found[:count]]


def newest(namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """The user's names among the newest 500, cut to 80 characters, with their values, newest first."""
    try:
        found = list(itertools.islice(reversed(namespace.items()), _NAMES_LIMIT))
    except RuntimeError:
        return []  # a user thread is adding names at the same time
    return [
        (name[:80], value)
        for name, value in found
        if isinstance(name, str) and not _OF_IPYTHON(name)
    ]


class Sizes:
    """Measures values of the libraries that are loaded when it is created.

    Args:
        elsewhere: Ids of arrays that others hold: these, and views of them, count nothing.
        gpu: True to count tensors in GPU memory only, False to count what is in host memory, None to count both.
    """

    def __init__(self, elsewhere: Collection[int] = (), *, gpu: bool | None = None) -> None:
        self._elsewhere = elsewhere
        self._gpu = gpu
        numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
        self._ndarray: Any = getattr(numpy, "ndarray", None)
        self._memmap = getattr(numpy, "memmap", None)
        self._frame = getattr(pandas, "DataFrame", None)
        self._series = getattr(pandas, "Series", None)
        self._torch = getattr(sys.modules.get("torch"), "Tensor", None)
        self._jax = getattr(sys.modules.get("jax"), "Array", None)
        self._image = getattr(sys.modules.get("PIL.Image"), "Image", None)
        self._table = getattr(sys.modules.get("pyarrow"), "Table", None)
        self._polars = getattr(sys.modules.get("polars"), "DataFrame", None)
        self.any_library = self._ndarray is not None or "tensorflow" in sys.modules

    def is_array(self, value: Any) -> bool:
        """True for a type that :meth:`of_array` measures; cheaper."""
        kind = type(value)
        return (
            (self._ndarray is not None and issubclass(kind, self._ndarray))
            or kind in (self._frame, self._series, self._table, self._polars)
            or (self._torch is not None and issubclass(kind, self._torch))
            or (self._jax is not None and _is_of_jax(kind))
            or (self._image is not None and issubclass(kind, self._image))
            or (kind.__module__.startswith(_TENSOR_MODULES) and _is_tensor(kind))
        )

    def is_measured(self, value: Any) -> bool:
        """The same for :meth:`of`."""
        return issubclass(type(value), _TEXTS) or self.is_array(value)

    def of(self, value: Any) -> int | None:
        """Bytes of the value's data; None for a type that is not measured."""
        if id(value) in self._elsewhere:
            return 0
        if issubclass(kind := type(value), _TEXTS):
            base: Any = next(one for one in _TEXTS if issubclass(kind, one))
            return self._host(int(base.__sizeof__(value)))
        return self.of_array(value)

    def of_array(self, value: Any) -> int | None:
        """The same, but None for texts and buffers."""
        # `isinstance` reads the value's __class__, and a proxy may run its own code for that.
        kind = type(value)
        try:
            if self._ndarray is not None and issubclass(kind, self._ndarray):
                return self._of_ndarray(value)
            if kind is self._frame or kind is self._series:
                return self._host(_frame_bytes(value))
            if kind.__module__.startswith(_TENSOR_MODULES):
                return self._of_tensor(value)
            if self._torch is not None and issubclass(kind, self._torch):
                size = int(value.numel()) * int(value.element_size())
                return size if self._gpu in (None, bool(value.is_cuda)) else 0
            if self._jax is not None and _is_of_jax(kind):
                is_on_host = all(one.platform == "cpu" for one in value.devices())
                return int(value.nbytes) if self._gpu in (None, not is_on_host) else 0
            if self._image is not None and issubclass(kind, self._image):
                return self._host(_image_bytes(value))
            if self._table is not None and kind is self._table:
                return self._host(int(value.nbytes))
            if self._polars is not None and kind is self._polars:
                return self._host(int(value.estimated_size()))
        except Exception:
            return None  # a partly constructed object
        return None

    def _host(self, size: int) -> int:
        return 0 if self._gpu else size

    def _of_ndarray(self, value: Any) -> int | None:
        memmap, size = self._memmap, int(self._ndarray.nbytes.__get__(value))
        if memmap is not None and issubclass(type(value), memmap):
            return None  # its data is in a file
        base = self._ndarray.base.__get__(value)
        if base is not None and type(base) is memmap:
            return None
        if id(base) in self._elsewhere:
            return 0
        if type(base) is self._ndarray:
            # A view keeps the whole array; several views share it. The references besides the views are ours.
            views = max(1, sys.getrefcount(base) - 2)
            size = max(size, int(self._ndarray.nbytes.__get__(base)) // views)
        return self._host(size)

    def _of_tensor(self, value: Any) -> int | None:
        size = _tensor_bytes(value)
        if size is None or self._gpu is None:
            return size
        inner = getattr(value, "_value", value)  # of a variable of Keras
        is_on_gpu = ":GPU:" in str(getattr(inner, "device", ""))
        return size if is_on_gpu == self._gpu else 0


def _is_of_jax(kind: type) -> bool:
    return kind.__name__ == "ArrayImpl" and kind.__module__.startswith("jax")


def _image_bytes(value: Any) -> int:
    """Bytes of a Pillow image; 0 while it is not loaded."""
    if getattr(value, "_im", None) is None and value.__dict__.get("im") is None:
        return 0
    width, height = value.size
    # Pillow stores a pixel of several bands in four bytes.
    return int(width) * int(height) * (1 if value.mode in ("1", "L", "P") else 4)


def _frame_bytes(value: Any) -> int:
    """Bytes of a pandas frame or series; of texts from a sample."""
    total = 0
    for block in value._mgr.blocks:
        values = block.values
        total += int(values.nbytes)
        if getattr(values.dtype, "kind", None) == "O":
            flat = values.reshape(-1)
            step = max(1, len(flat) // _OBJECT_SAMPLE)
            sample = flat[::step][:_OBJECT_SAMPLE]
            texts = sum(sys.getsizeof(one) for one in sample if type(one) in (str, bytes))
            total += len(flat) * texts // max(1, len(sample))
    return total


def _is_tensor(kind: type) -> bool:
    return any(one.__name__ in _TENSOR_KINDS for one in kind.__mro__)


def _tensor_bytes(value: Any) -> int | None:
    if not _is_tensor(type(value)):
        return None
    sizes = [None if size is None else int(size) for size in tuple(value.shape)]
    if None in sizes:
        return None
    width = _width(value.dtype)
    return None if width is None else math.prod(s for s in sizes if s is not None) * width


def _width(dtype: Any) -> int | None:
    """Bytes of one element, from a TensorFlow dtype or a Keras 3 name like ``bfloat16``."""
    if not isinstance(dtype, str):
        return int(dtype.size) or None
    if dtype == "bool":
        return 1
    bits = re.match(r"[a-z]+(\d+)", dtype)  # float8_e4m3fn has 8
    return max(1, int(bits[1]) // 8) if bits else None
