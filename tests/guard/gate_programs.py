"""Programs for tests of the gate. Each runs in a process with a memory limit of its own: ``gate_programs.py NAME``.

A program is a function that returns what the test looks at, as JSON. It begins when a line comes on stdin: by then the process is
in its memory group. Those here are about NumPy, Python and the disk; gate_threads.py and gate_packages.py have the others.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import os
import resource
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from jupyter_tfguard.guard import native
from jupyter_tfguard.guard.native import _default_handler, _numpy_core
from jupyter_tfguard.units import GIB, MIB
from tests.guard import gate_packages, gate_threads
from tests.guard.gate_rig import SIGNAL, Gate, Stopped


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


if __name__ == "__main__":
    sys.stdin.readline()
    programs = vars(gate_threads) | vars(gate_packages) | globals()
    print(json.dumps(programs[sys.argv[1]]()))
