"""Programs that take GPU memory in steps, with TensorFlow or the CUDA driver alone, for ``gpu_truth.py``.

``python tests/bench/gpu_users.py NAME [SIZE_BYTES ...]`` prints one JSON line per step and waits for a line on its
standard input before the next one: ``loaded`` (the library is there, no context of ours yet), ``first use`` (one byte on the card),
then the sizes. ``{"step", "pid", "framework", "version", "asked_bytes", "held_bytes", "bus_id"}``; ``held_bytes`` is what
the framework says that it took from the card, None where it does not tell. A framework that is missing, or sees no card, prints
``{"missing": why}`` and ends.

Nothing here provokes a fault: what is asked for is what ``gpu_truth.py`` saw free.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable
from typing import Any

NAMES = ("tensorflow", "cuda")
_OK = 0


class Missing(Exception):
    """This framework cannot hold memory on a card here."""


class User:
    """A framework at work on its first card.

    Attributes:
        version: Of the framework.
        take: Takes so many bytes on the card and keeps them.
        held_bytes: What the framework says it took from the card; None where it does not tell.
    """

    def __init__(
        self, version: str, take: Callable[[int], Any], held_bytes: Callable[[], int | None]
    ) -> None:
        self.version = version
        self._take = take
        self.held_bytes = held_bytes
        self._kept: list[Any] = []

    def take(self, size_bytes: int) -> None:
        """Take memory and keep it."""
        self._kept.append(self._take(size_bytes))


def tensorflow() -> User:
    """TensorFlow's allocator takes regions from the card and tells what is in use of them, not what it took."""
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        raise Missing("TensorFlow sees no GPU")

    def take(size: int) -> Any:
        with tf.device("/GPU:0"):
            return tf.zeros([size], tf.uint8)

    def held() -> int:
        return int(tf.config.experimental.get_memory_info("GPU:0")["current"])

    return User(tf.__version__, take, held)


def cuda() -> User:
    """The CUDA driver alone, where no framework is installed: what it was asked for is what it holds."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as absent:
        raise Missing(f"no CUDA driver: {absent}") from absent

    def call(name: str, *arguments: Any) -> None:
        if (code := getattr(driver, name)(*arguments)) != _OK:
            raise Missing(f"{name} gave {code}")

    call("cuInit", 0)
    version, device = ctypes.c_int(), ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    call("cuDeviceGet", ctypes.byref(device), 0)
    taken = [0]

    def take(size: int) -> int:
        if not taken[0]:
            context = ctypes.c_void_p()
            call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            call("cuCtxSetCurrent", context)
        place = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
        taken[0] += size
        return place.value

    told = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return User(told, take, lambda: taken[0])


def main() -> int:
    """Take the steps; the exit code."""
    name, sizes = sys.argv[1], [int(size) for size in sys.argv[2:]]
    make: Callable[[], User] = {
        "tensorflow": tensorflow,
        "cuda": cuda,
    }[name]
    try:
        user = make()
    except (Missing, ImportError, importlib.metadata.PackageNotFoundError) as absent:
        print(json.dumps({"missing": str(absent)}), flush=True)
        return 2
    asked = 0
    for step, size in (("loaded", 0), ("first use", 1), *((f"+{s >> 20} MiB", s) for s in sizes)):
        if size:
            user.take(size)
        asked += size
        line = {"step": step, "pid": os.getpid(), "framework": name, "version": user.version}
        # Before the first use the question itself would make the context.
        held = user.held_bytes() if asked else None
        print(json.dumps(line | {"asked_bytes": asked, "held_bytes": held}), flush=True)
        sys.stdin.readline()
    return 0


if __name__ == "__main__":
    sys.exit(main())
