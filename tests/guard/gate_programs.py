"""Programs for tests of the gate. Each runs in a process with a memory limit of its own: ``gate_programs.py NAME``.

A program is a function that returns what the test looks at, as JSON. It begins when a line comes on stdin: by then the process is
in its memory group.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import hashlib
import itertools
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np

from jupyter_tfguard.collectors.memory_group import memory_groups
from jupyter_tfguard.guard import native
from jupyter_tfguard.guard.native import NativeGuard, _default_handler, _numpy_core
from jupyter_tfguard.levels import Levels
from jupyter_tfguard.units import GIB, MIB

SIGNAL = signal.SIGRTMIN + 9


class Stopped(MemoryError):
    """The sampler stopped the cell."""


class Gate:
    """A started and armed native guard."""

    def __init__(
        self, disk_folder: str | None = None, parts: tuple[str, ...] = native.PARTS
    ) -> None:
        self.native = NativeGuard.load()
        signal.signal(SIGNAL, self._on_signal)
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        self.native.start(memory_groups(os.getpid()), write, SIGNAL)
        self.parts = self.native.gate(parts, disk_folder)
        self.seen: dict[str, Any] = {}

    def _on_signal(self, number: int, frame: object) -> None:
        seen = self.native.snapshot()
        if seen.tripped and not seen.delivered:
            self.native.delivered()
            raise Stopped

    @contextlib.contextmanager
    def cell(self, **levels: float) -> Iterator[dict[str, Any]]:
        """The guard is armed, with these levels changed; what it saw and the error are in the dictionary afterwards."""
        seen: dict[str, Any] = {"error": None}
        total, left = self.native.total_bytes(), self.native.available_bytes()
        self.native.arm(Levels.of(total).for_cell(left)._replace(**levels))
        try:
            yield seen
        except Exception as error:
            seen["error"], seen["text"] = type(error).__name__, str(error)[:200]
        finally:
            found = self.native.snapshot()
            self.native.disarm()
            seen |= {name: value for name, value in found._asdict().items() if name != "error"}


def numpy_is_refused() -> object:
    gate, kept = Gate(), np.arange(MIB)
    with gate.cell() as ones:
        np.ones(2 * GIB, "u1")
    with gate.cell() as grown:
        bigger = np.ones(4 * MIB, "u1")
        bigger.resize(2 * GIB, refcheck=False)
    with gate.cell() as small:
        total = int(np.ones(4 * MIB, "u1").sum())
    whole = bool((kept == np.arange(MIB)).all())
    return {
        "parts": gate.parts,
        "ones": ones,
        "grown": grown,
        "small": small,
        "sum": total,
        "whole": whole,
        "folder": os.path.dirname(os.path.dirname(np.__file__)),
    }


def fourier_transform() -> object:
    gate, signal_ = Gate(), np.ones(1_000_003)
    transform = np.fft.fft  # NumPy 2 loads it now
    parts = gate.native.gate()
    whole = transform(signal_)
    kept = np.ones(6_000_011)  # a prime number needs much room to work in
    with gate.cell() as seen:
        transform(kept)
    with gate.cell() as small:
        small["same"] = bool((transform(signal_) == whole).all())
    return {"part": parts["fourier"], "seen": seen, "small": small}


def huge_sparse_array() -> object:
    gate = Gate()
    with gate.cell() as seen:
        sparse = np.zeros(3 * GIB, "u1")
        sparse[:: 16 * MIB] = 1
        seen["sum"] = int(sparse[:: 4 * MIB].sum())
    return seen


def empty_of_the_user() -> object:
    found = {}
    for name, parts in (("full", native.PARTS), ("soft", native.PYTHON_PARTS)):
        gate = Gate(parts=parts)
        with gate.cell() as seen:
            part_used = np.empty(3 * GIB, "u1")
            part_used[:: 64 * MIB] = 1  # huge pages of 2 MiB
            seen["sum"] = int(part_used[:: 64 * MIB].sum())
            seen["after"] = int(np.ones(8 * MIB, "u1").sum())
        del part_used
        with gate.cell() as filled:
            np.full(3 * GIB, 1, "u1")
        with gate.cell() as computed:
            kept = np.ones(100 * MIB, "u1")
            kept * np.float64(1)
        found[name] = {"seen": seen, "filled": filled, "computed": computed}
        gate.native.stop()
    return found


def result_that_will_be_filled() -> object:
    found = {}
    np.fft.fft(np.ones(8))  # NumPy 2 loads it now
    for name, parts in (("full", native.PARTS), ("soft", native.PYTHON_PARTS)):
        gate = Gate(parts=parts)
        values = np.ones(12_000_000)
        with gate.cell() as found[name]:
            np.fft.fft(values)
        del values
        gate.native.stop()
    return found


def slowly_filled() -> object:
    package: dict[str, Any] = {"empty": np.empty}
    code = "def result(size): return empty(size, 'u1')"
    exec(compile(code, "/lib/site-packages/package.py", "exec"), package)
    gate, found = Gate(), {}
    for name, seconds in (("soon", 2.2), ("late", 6.5)):
        with gate.cell() as found[name]:
            result = package["result"](300 * MIB)
            time.sleep(seconds)
            np.ones(300 * MIB, "u1")
        del result
    return found


def zeros_before_ones() -> object:
    found = {}
    for name, parts in (("full", native.PARTS), ("soft", native.PYTHON_PARTS)):
        gate = Gate(parts=parts)
        with gate.cell() as seen:
            later = np.zeros(300 * MIB, "u1")
            ones = np.ones(300 * MIB, "u1")
            later[:: 64 * MIB] = 1
            seen["sums"] = [int(later.sum()), int(ones.sum()) // MIB]
        del later, ones
        with gate.cell() as empty:
            later = np.empty(300 * MIB, "u1")
            ones = np.ones(300 * MIB, "u1")
        del later, ones
        with gate.cell() as resized:
            later = np.zeros(300 * MIB, "u1")
            grown = np.ones(2 * MIB, "u1")
            grown.resize(300 * MIB, refcheck=False)
        del later, grown
        with gate.cell() as threads:
            ready = threading.Barrier(2)

            def fill(ready: threading.Barrier = ready) -> int:
                ready.wait()
                return int(np.ones(300 * MIB, "u1").sum()) // MIB

            with ThreadPoolExecutor(2) as pool:
                running = [pool.submit(fill) for _ in range(2)]
            threads["ended"] = sorted(str(one.exception() or one.result())[:16] for one in running)
        found[name] = {"seen": seen, "empty": empty, "resized": resized, "threads": threads}
        gate.native.stop()
    return found


def refused_after_it_went_on() -> object:
    gate = Gate()
    with gate.cell() as seen:
        kept = []
        with contextlib.suppress(Stopped):
            while True:
                kept.append(np.ones(64 << 10, "u1"))
        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
        while gate.native.snapshot().trip_count < 2:
            kept.append(np.ones(64 << 10, "u1"))
            time.sleep(0.0002)
        seen["refused"] = False
        try:
            np.ones(64 * MIB, "u1")
        except MemoryError:
            seen["refused"] = True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {SIGNAL})
    return seen


def freed_between_blocks() -> object:
    """Uses memory while malloc holds some that is free, then fills all of it."""
    gate = Gate(parts=native.SOFT_PARTS)
    blocks, pins, filled = [], [], []
    found: dict[str, Any] = {}
    with gate.cell() as found["first"]:
        before = gate.native.available_bytes()
        for _ in range(2500):
            blocks.append(bytearray(b"x" * 100_000))
            pins.append(bytearray(2000))  # of the same heap: malloc cannot shrink it
        blocks.clear()
        found["held_bytes"] = before - gate.native.available_bytes()
        for _ in range(325):  # slowly: a fast fill is stopped without waiting for that
            filled.append(np.ones(MIB, "u1"))
            time.sleep(0.005)
    found["count"] = len(filled)
    with gate.cell() as found["all"]:
        while True:
            filled.append(np.ones(2 * MIB, "u1"))
            time.sleep(0.002)
    return found


def result_of_a_pool() -> object:
    """A result that cannot be received must not end the thread that receives results."""
    gate = Gate(parts=native.SOFT_PARTS)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with gate.cell(reserve_bytes=GIB) as seen:
            results = pool.imap(bytes, [4 * MIB, 1])
            seen["length"] = len(next(results))
        seen["rest"] = [len(one) for one in results]
    return seen


def work_of_a_pool() -> object:
    """What a pool of threads runs may be refused: its error reaches who waits for the result."""
    gate = Gate(parts=native.SOFT_PARTS)
    found: dict[str, Any] = {}
    with ThreadPoolExecutor(1) as executor, gate.cell(reserve_bytes=GIB) as found["executor"]:
        executor.submit(np.ones, 4 * MIB).result()
    with ThreadPool(1) as pool, gate.cell(reserve_bytes=GIB) as found["pool"]:
        pool.map(np.ones, [4 * MIB])
    return found


def loop_outside_the_cell() -> object:
    """The event loop runs while a cell awaits: a failed request there would end the kernel."""
    gate = Gate(parts=native.SOFT_PARTS)
    signal.signal(SIGNAL, signal.SIG_IGN)  # only a failed request can stop
    errors: list[str] = []
    seen: dict[str, Any] = {}

    async def cell() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(str(context)))
        for _ in range(40):
            loop.call_soon(sorted, range(200_000))  # without a frame of the user's
            await asyncio.sleep(0)
        seen["of_the_loop"], seen["tripped"] = len(errors), gate.native.snapshot().tripped
        while True:
            sorted(range(200_000))

    with gate.cell(stop_bytes=GIB, stop_cap_bytes=GIB, own_fraction=0) as stopped:
        asyncio.run(cell())
    return seen | {"error": stopped["error"]}


def native_thread_fills() -> object:
    """One call into C fills on in a thread, while the main thread needs time to stop."""
    gate = Gate(parts=native.SOFT_PARTS)
    results: list[bytes] = []

    def fill() -> None:  # 256 MiB, without the GIL
        results.append(hashlib.scrypt(b"", salt=b"", n=2**18, r=8, p=1, maxmem=GIB))

    def on_signal(number: int, frame: object) -> None:
        with gate.native.exempt():
            if gate.native.snapshot().tripped and kept:
                gate.native.delivered()
                time.sleep(0.4)
                kept.clear()

    kept = [bytearray(b"x" * MIB) for _ in range(gate.native.available_bytes() // MIB - 240)]
    signal.signal(SIGNAL, on_signal)
    with gate.cell(own_fraction=0) as seen:
        thread = threading.Thread(target=fill)
        thread.start()
        thread.join()
    return seen | {"results": len(results), "kept": len(kept)}


def trees_are_refused() -> object:
    """Builders of trees run in native threads."""
    from sklearn.ensemble import ExtraTreesRegressor

    gate = Gate(parts=native.SOFT_PARTS)
    x = np.random.default_rng(0).random((60_000, 3), dtype="f4")
    forest = ExtraTreesRegressor(n_estimators=2, n_jobs=2, random_state=0, max_features=1)
    with gate.cell(reserve_bytes=GIB) as refused:
        forest.fit(x, x[:, 0])
    with gate.cell() as fits:
        fits["trees"] = len(forest.fit(x, x[:, 0]).estimators_)
    return {"part": gate.parts["sklearn"], "refused": refused, "fits": fits}


def disk_block_grows() -> object:
    gate = Gate()
    with gate.cell() as seen:
        array = np.zeros(600 * MIB, "u1")
        array[-MIB:] = 7
        array.resize(700 * MIB, refcheck=False)
        array[-MIB:] = 9
        seen["sums"] = [int(array[at : at + MIB].sum()) // MIB for at in (599 * MIB, 699 * MIB)]
        array.resize(2 * MIB, refcheck=False)
        seen["first"] = int(array[0])
    del array
    return seen


def long_call_is_interrupted() -> object:
    gate = Gate()
    with gate.cell() as at_once:
        list(range(10**9))
    with gate.cell() as bit_by_bit:
        list(itertools.count(10**9))
    gc.collect()
    with gate.cell() as after:
        after["length"] = len(list(map(str, range(1000))))
    return {"at_once": at_once, "bit_by_bit": bit_by_bit, "after": after}


def signal_is_handled_late() -> object:
    gate = Gate()

    def handle_late(number: int, frame: object) -> None:
        signal.signal(SIGNAL, gate._on_signal)
        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
        time.sleep(0.3)  # as on a busy machine: it uses no CPU time
        ["a" * size for size in range(600, 700)]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {SIGNAL})

    signal.signal(SIGNAL, handle_late)
    kept = []
    with gate.cell() as seen:
        while True:
            kept.append(np.ones(MIB, "u1"))
            time.sleep(0.02)
    return seen


def stop_restores() -> object:
    class Allocator(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_void_p) for name in ["context", "malloc", "calloc", "realloc", "free"])  # fmt: skip

    class Arenas(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_void_p) for name in ["context", "allocate", "free"])

    def pointers() -> list[object]:
        module = _numpy_core()
        assert module is not None
        numpy = Allocator.from_address(_default_handler(module) + 128)
        raw, arenas = Allocator(), Arenas()
        ctypes.pythonapi.PyMem_GetAllocator(0, ctypes.byref(raw))
        ctypes.pythonapi.PyObject_GetArenaAllocator(ctypes.byref(arenas))
        return [getattr(s, n) for s in (numpy, raw, arenas) for n, _ in s._fields_]

    before = pointers()
    gate = Gate()
    during = pointers()
    with gate.cell() as seen:
        alive = np.zeros(2 * GIB, "u1")
        alive[::MIB] = 3
    gate.native.stop()
    after = pointers()
    total = int(alive[::MIB].sum())
    del alive
    again = Gate()
    with again.cell() as second:
        np.ones(2 * GIB, "u1")
    return {"changed": before != during, "same": before == after, "sum": total, "seen": seen, "second": second}  # fmt: skip


def forked_child() -> object:
    gate = Gate()
    with gate.cell() as seen:
        shared = np.zeros(2 * GIB, "u1")
        shared[5] = 1
        child = os.fork()
        if child == 0:
            array = np.ndarray(GIB, "u1")  # refused in the parent
            shared[5] += 1
            os._exit(0 if array.size == GIB and shared[5] == 2 else 1)
        seen["status"] = os.waitpid(child, 0)[1]
        seen["kept"] = int(shared[5])
        np.ndarray(GIB, "u1")
    return seen


def without_disk() -> object:
    found = {}
    for name, folder in (("memory", "/dev/shm"), ("absent", "/no/such/folder")):
        gate = Gate(folder)
        with gate.cell() as seen:
            seen["sum"] = int(np.zeros(GIB, "u1")[:: 16 * MIB].sum())
        found[name] = {"part": gate.parts["disk"], **seen}
        gate.native.stop()
    return found


def file_size_limit() -> object:
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * MIB, resource.RLIM_INFINITY))
    gate = Gate()
    with gate.cell() as seen:
        seen["sum"] = int(np.zeros(GIB, "u1")[:: 16 * MIB].sum())
    return seen


def full_disk() -> object:
    """The folder of temporary files is on a small disk. What fits goes there, what does not is as without the gate."""
    native._KEEP_FREE_BYTES = 8 * MIB
    gate = Gate(os.environ["SMALL_DISK"])
    kept = []
    with gate.cell() as seen:
        for _ in range(3):
            kept.append(np.zeros(600 * MIB, "u1"))
        seen["filled"] = int(kept[0].size)
        kept[0][: 200 * MIB] = 1
        kept[0].resize(2 * GIB, refcheck=False)
    return seen | {"part": gate.parts["disk"]}


def another_allocator() -> object:
    gate = Gate()
    with gate.cell():
        np.empty(GIB, "u1")
    return gate.parts


def traced_python() -> object:
    import tracemalloc

    tracemalloc.start()
    gate = Gate()
    return gate.parts


def tensorflow() -> object:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    # A version is tried before it is listed as tested.
    native._TESTED_TENSORFLOW = {tuple(tf.__version__.split(".")[:2])}
    gate = Gate()
    found: dict[str, Any] = {"parts": gate.parts}
    with gate.cell() as found["op"]:
        tf.random.normal((30000, 30000))
    with gate.cell() as found["matrix"]:
        tf.matmul(tf.ones((20000, 100)), tf.ones((100, 20000)))
    with gate.cell() as found["fits"]:
        found["fits"]["sum"] = float(tf.reduce_sum(tf.ones((5000, 5000))))
    found["released"] = gate.native.give_back()
    source = np.ones((25, MIB), "f4")
    tensors = []
    signal.signal(SIGNAL, signal.SIG_IGN)  # a tensor on disk stops the run; here it is to be used
    with gate.cell() as found["constant"]:
        while not found["constant"].get("on_disk"):
            tensors.append(tf.constant(source))
            found["constant"]["on_disk"] = gate.native.snapshot().spilled_bytes
    found["sums"] = [float(tf.reduce_sum(one)) for one in tensors]
    gate.native.stop()  # while a tensor is on disk
    tensors.clear()
    gc.collect()
    found["after"] = float(tf.reduce_sum(tf.ones((1000, 1000))))
    again = Gate()
    with again.cell() as found["again"]:
        tf.random.normal((30000, 30000))
    found["armed_again"] = again.parts["tensorflow"]
    again.native.stop()
    return found


def release_beside_a_thread() -> object:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # what it prints about memory is a warning
    import threading

    import tensorflow as tf

    gate = Gate(parts=native.SOFT_PARTS)
    with gate.cell() as seen:
        tf.reduce_sum(tf.ones((64, MIB)))  # leaves 256 MB in the pool
        kept, before = tf.range(8 * MIB), gate.native.available_bytes()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        first = gate.native.give_back()
        file.seek(0)
        noise = file.read().decode()
    returned, whole = gate.native.available_bytes() - before, int(tf.reduce_max(kept))
    ended = threading.Event()

    def use_pool() -> None:
        while not ended.is_set():
            tf.ones((8, MIB))

    thread = threading.Thread(target=use_pool)
    thread.start()
    time.sleep(0.2)
    mapped = _mapped_bytes()
    released = sum(gate.native.give_back() > 0 for _ in range(200))
    grown = _mapped_bytes() - mapped
    ended.set()
    thread.join()
    return {
        "part": gate.parts["pool"],
        "first": first,
        "noise": noise,
        "returned": returned,
        "whole": whole,
        "seen": seen,
        "released": released,
        "grown_bytes": grown,
    }


def _mapped_bytes() -> int:
    """Address space of this process: the pool never returns what it has got."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def pandas_parser() -> object:
    import pandas as pd

    gate = Gate()
    path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    with open(path, "w") as file:
        file.writelines("1,2,3,4,5,6,7,8\n" * 200_000 for _ in range(40))
    # However fast it reads, a request is refused before the level of a stop. A path would be read by several threads.
    with gate.cell(rate_seconds=0.0) as seen, open(path) as file:
        pd.read_csv(file, header=None, dtype=str, low_memory=False)
    with gate.cell() as small:
        small["rows"] = len(pd.read_csv(path, header=None, nrows=100))
    os.remove(path)
    return {"part": gate.parts["pandas"], "seen": seen, "small": small}


if __name__ == "__main__":
    sys.stdin.readline()
    print(json.dumps(globals()[sys.argv[1]]()))
