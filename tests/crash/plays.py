"""What takes more than a cell to play. Not here: what happens at a memory limit (``memory_plays.py``)."""

from __future__ import annotations

import os
import platform
import signal
import time
from typing import TYPE_CHECKING

from tests.crash.scene import CannotBePlayed, Play, cell
from tests.crash.settings import small_shared_memory_works, threads_limited

if TYPE_CHECKING:
    from tests.crash.conftest import Kernel


def killed_from_outside(kernel: Kernel) -> None:
    """As somebody with a terminal does it."""
    kernel.sleep()
    os.kill(kernel.pid, signal.SIGKILL)


def illegal_instruction(kernel: Kernel) -> None:
    """An instruction that no processor has, run from memory."""
    codes = {"x86_64": b"\x0f\x0b", "aarch64": b"\x00\x00\x00\x00"}
    if platform.machine() not in codes:
        raise CannotBePlayed(f"no such instruction is known for {platform.machine()}")
    kernel.start(
        "import ctypes, mmap\nroom = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        f"room.write({codes[platform.machine()]!r})\n"
        "ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(room)))()"
    )


def fills_the_shared_memory(kernel: Kernel) -> None:
    """More than /dev/shm holds, by way of Python's own shared memory."""
    if not small_shared_memory_works():
        raise CannotBePlayed("no private mount can be made here")
    kernel.run("import os; assert os.statvfs('/dev/shm').f_blocks * 4096 <= 8 << 20")
    kernel.start(
        "from multiprocessing import shared_memory\n"
        "block = shared_memory.SharedMemory(create=True, size=32 << 20)\n"
        "block.buf[:] = bytes(32 << 20)"
    )


def starts_no_more_threads(kernel: Kernel) -> None:
    """TensorFlow wants a pool of threads for its first operation."""
    kernel.run("import tensorflow as tf", timeout=120)
    with threads_limited(kernel.pid, more=0):
        kernel.start("tf.function(lambda x: x + x)(tf.ones(3))")
        kernel.report()


# --- near misses


def after_a_pause(first: str, last: str, seconds: float = 3.0) -> Play:
    """A cell that says something and lives, and much later one that ends."""

    def play(kernel: Kernel) -> None:
        assert kernel.run(first)["status"] == "ok"
        time.sleep(seconds)
        kernel.start(last)

    return play


def no_thread_and_survived(then: str) -> Play:
    """Python is refused a thread, which is an exception like any other."""

    def play(kernel: Kernel) -> None:
        with threads_limited(kernel.pid, more=0):
            kernel.start(
                "import threading\ntry:\n    threading.Thread(target=print).start()\n    raise SystemError('started')\n"
                f"except RuntimeError as refused:\n    print(refused)\n{then}"
            )
            kernel.report()
            kernel.close()

    return play


def with_a_small_shm(*cells: str) -> Play:
    """The cells in a kernel whose /dev/shm is small."""

    def play(kernel: Kernel) -> None:
        if not small_shared_memory_works():
            raise CannotBePlayed("no private mount can be made here")
        cell(cells[-1], *cells[:-1])(kernel)

    return play


def stopped_for_a_while(kernel: Kernel) -> None:
    """As a machine that slept, or was swapped out, for some seconds."""
    kernel.sleep()
    os.kill(kernel.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(kernel.pid, signal.SIGCONT)
    os.kill(kernel.pid, signal.SIGKILL)
