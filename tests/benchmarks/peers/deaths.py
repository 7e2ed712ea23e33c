"""The thirteen deaths: what the last cell does, what happens to it from outside, and by which words its cause is named."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.peers.container import GIB
from tests.crash.cells import EAT

_FIT = """\
import numpy as np
import tensorflow as tf
images = np.random.default_rng(0).random((1024, 100, 100, 3), dtype="float32")
labels = np.zeros(1024)
model = tf.keras.Sequential([
    tf.keras.layers.Input((100, 100, 3)),
    tf.keras.layers.Conv2D(32, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(images, labels, batch_size=1024, epochs=5, verbose=0)
"""
_ARRAY = """\
import numpy as np
images = np.ones((20_000, 128, 128, 3), dtype="float32")
"""
_SEGFAULT = """\
import ctypes
def poke(address):
    return ctypes.string_at(address)
poke(0)
"""
_HEAP = """\
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
block = ctypes.c_void_p(libc.malloc(64))
libc.free(block)
libc.free(block)
"""
_XLA = """\
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_devices=2"
import tensorflow as tf
tf.function(lambda x: x + x, jit_compile=True)(tf.ones(3))
"""
_STACK = """\
import sys
sys.setrecursionlimit(10**9)
class Layer:
    def __getattr__(self, name):
        return getattr(self, name + "x")
Layer().units
"""
_EAT_AT_ONCE = "held = []\nwhile True:\n    held.append(bytearray(b'x' * (16 << 20)))"
_CHILD = """\
import subprocess
import sys
try:
    subprocess.run([sys.executable, "-c", {eat!r}], check=True)
finally:
    gate.note()
"""
_SHARED = """\
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=128 << 20)
block.buf[:] = bytes(128 << 20)
"""
_DEADLOCK = """\
import threading
first, second, barrier = threading.Lock(), threading.Lock(), threading.Barrier(2)
def forwards():
    with first:
        barrier.wait()
        with second:
            pass
def backwards():
    with second:
        barrier.wait()
        with first:
            pass
threading.Thread(target=backwards, daemon=True).start()
gate.note()
forwards()
"""
_WAIT = "import time\ntime.sleep(600)\n"
_NO_MEMORY = r"out of memory|memory limit|container's memory|memory ran out"
_SEGV = r"SIGSEGV|segmentation fault|signal 11\b"


@dataclass(frozen=True)
class Death:
    """One way for a kernel to end, or to be in trouble.

    Attributes:
        name: For ``--only``.
        title: For people.
        code: Of the last cell.
        cause: A text that matches names the cause.
        ending: A text that matches gives the signal or exit code.
        act: What is done to the process from outside.
        kernel_ends: False when the kernel survives it; then the cell notes the moment.
        restarted: The user waits, then restarts the kernel.
        limit_bytes: Memory limit of the container.
    """

    name: str
    title: str
    code: str
    cause: str
    ending: str
    act: Callable[[int], None] | None = None
    kernel_ends: bool = True
    restarted: bool = False
    limit_bytes: int = 2 * GIB


def _sends(number: signal.Signals) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


_KILLED = r"SIGKILL|signal 9\b|Killed"
DEATHS = (
    Death("limit-in-fit", "Memory limit of the container, during `fit`", _FIT, _NO_MEMORY, _KILLED),
    Death(
        "large-array",
        "One array larger than the container",
        _ARRAY,
        _NO_MEMORY,
        _KILLED,
        limit_bytes=GIB,
    ),
    Death(
        "sigkill",
        "SIGKILL from outside, with memory left",
        _WAIT,
        _KILLED,
        _KILLED,
        _sends(signal.SIGKILL),
    ),
    Death("segfault", "Segmentation fault in native code", _SEGFAULT, _SEGV, _SEGV),
    Death(
        "heap",
        "Heap corruption, found by glibc (double free)",
        _HEAP,
        r"double free|heap",
        r"SIGABRT|signal 6\b|Aborted",
    ),
    Death(
        "xla-flag",
        "TensorFlow ends the process: unknown flag in `XLA_FLAGS`",
        _XLA,
        r"unknown flag",
        r"exit(ed)?( with)?( error)? code:? 1\b",
    ),
    Death(
        "stack",
        "Stack overflow by recursion",
        _STACK,
        r"recursion|stack overflow|call stack",
        _SEGV,
    ),
    Death(
        "sigterm",
        "SIGTERM from outside",
        _WAIT,
        r"SIGTERM|signal 15\b|Terminated|asked to end",
        r"SIGTERM|signal 15\b|Terminated",
        _sends(signal.SIGTERM),
    ),
    Death(
        "exit",
        "`os._exit(3)` in a library",
        "import os\nos._exit(3)\n",
        r"code:? 3\b",
        r"code:? 3\b",
    ),
    Death(
        "child",
        "A child process fills the memory in seconds and is killed; the kernel survives",
        _CHILD.format(eat=EAT),
        _NO_MEMORY,
        _KILLED,
        kernel_ends=False,
        limit_bytes=GIB,
    ),
    Death(
        "quick-child",
        "The same, but the child fills the memory at once",
        _CHILD.format(eat=_EAT_AT_ONCE),
        _NO_MEMORY,
        _KILLED,
        kernel_ends=False,
        limit_bytes=GIB,
    ),
    Death(
        "bus-error",
        "Bus error: `/dev/shm` is full",
        _SHARED,
        r"shared memory|/dev/shm",
        r"SIGBUS|signal 7\b|Bus error",
    ),
    Death(
        "hang",
        "A deadlock; the user waits and restarts the kernel",
        _DEADLOCK,
        r"for a lock|in forwards",
        r"no progress|stood still|without progress|hang",
        kernel_ends=False,
        restarted=True,
    ),
)
