"""Programs of gate_programs.py about threads, pools and the event loop: where a failed request may be raised, and where not."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import multiprocessing
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np

from jupyter_tfguard.guard import native
from jupyter_tfguard.units import GIB, MIB
from tests.guard.gate_rig import SIGNAL, Gate


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


def threads_fill_before_the_stop() -> object:
    """Blocks that are not checked otherwise, from threads that leave the main thread no turn before memory is full."""
    gate = Gate(parts=native.SOFT_PARTS)
    found: dict[str, Any] = {}
    for name, block in {"python": lambda: b"x" * (256 << 10), "numpy": _medium_array}.items():

        def fill(block: Callable[[], object] = block) -> int:
            kept = []
            while True:
                kept.append(block())

        with ThreadPoolExecutor(1) as executor, gate.cell() as seen:
            signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
            seen["thread"] = type(executor.submit(fill).exception()).__name__
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {SIGNAL})
            time.sleep(0)
        found[name] = seen
    return found


def _medium_array() -> object:
    return np.ones(256 << 10, "u1")


def long_call_in_a_thread() -> object:
    """One call into C fills memory with small objects in a thread, and keeps the interpreter lock from the main thread."""
    gate = Gate(parts=native.SOFT_PARTS)
    found: dict[str, Any] = {}
    with ThreadPoolExecutor(1) as executor, gate.cell() as found["cell"]:
        running = executor.submit(lambda: deque(map(float, itertools.count())))
        found["thread"] = type(running.exception()).__name__
        while True:
            time.sleep(0.001)
    return found
