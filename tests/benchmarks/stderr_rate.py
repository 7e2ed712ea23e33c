"""What keeping native text costs who writes it, and what rate is passed on: ``python tests/benchmarks/stderr_rate.py [--quick]``.

Two kernels live side by side, one guarded, one not; native code prints 1 GB (``--quick``: 64 MB) in lines of 100 bytes.

* ``flood``: the GIL is released. Seconds of the writer, processor seconds of the kernel meanwhile, bytes a second that
  came out in the notebook, what was left out.
* ``loop``: a fixed piece of Python work, while a native thread prints as fast as it can.
* ``quiet loop``: the same, nothing printed. The difference is what the flood costs.

Needs a C compiler. Linux only.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.bench import Bench, paired
from tests.kernel.rig import GuardedKernel, guarded_kernel
from tests.record.spool_rig import lines_library

LINE_BYTES = 100
SETUP = """
import ctypes, threading, time
native = ctypes.CDLL({library!r})
def write(lines):
    native.write_lines(ctypes.c_long(lines), {length}, 2)
def flood(lines):
    began, cpu = time.perf_counter(), time.process_time()
    write(lines)
    print(time.perf_counter() - began, time.process_time() - cpu)
def loop(printing):
    done = threading.Event()
    def print_on():
        while not done.is_set():
            write(20_000)
    thread = threading.Thread(target=print_on)
    if printing:
        thread.start()
    began, cpu = time.perf_counter(), time.thread_time()
    for _ in range(2000):
        sum(range(20_000))
    seconds = time.perf_counter() - began, time.thread_time() - cpu
    done.set()
    if printing:
        thread.join()
    print(*seconds)
"""


def run(kernel: GuardedKernel, code: str) -> tuple[list[float], int, float]:
    """The numbers the cell printed, bytes of stderr that arrived, and seconds until the last of them."""
    request = kernel.send(code)
    printed, arrived, ended = "", 0, False
    began = last = time.monotonic()
    while not ended or time.monotonic() - last < 1.0:
        try:
            message = kernel.client.get_iopub_msg(timeout=0.2)
        except queue.Empty:
            continue
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stderr":
            arrived += len(content["text"])
            last = time.monotonic()
        elif message["parent_header"].get("msg_id") == request:
            if message["msg_type"] == "stream":
                printed += content["text"]
            elif message["msg_type"] == "error":
                raise RuntimeError("\n".join(content["traceback"]))
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                ended, last = True, time.monotonic()
    return [float(number) for number in printed.split()], arrived, last - began


def left_out(kernel: GuardedKernel) -> int:
    """Bytes that were left out so far, as the recording says; 0 without one."""
    found = kernel.recording_paths()
    return int(kernel.recording().header.get("native_text_dropped_bytes", 0)) if found else 0


def flood(kernel: GuardedKernel, lines: int) -> dict[str, float]:
    """Print so many lines natively."""
    before = left_out(kernel)
    (seconds, cpu), arrived, until_last = run(kernel, f"flood({lines})")
    time.sleep(1.2)  # the count is written once a second
    return {
        "writer_seconds": seconds,
        "process_cpu_seconds": cpu,
        "arrived_bytes_per_second": arrived / until_last,
        "left_out_fraction": (left_out(kernel) - before) / (lines * LINE_BYTES),
    }


def loop(kernel: GuardedKernel, *, printing: bool) -> dict[str, float]:
    """Do the Python work."""
    (seconds, cpu), arrived, until_last = run(kernel, f"loop({printing})")
    found = {"loop_seconds": seconds, "loop_thread_cpu_seconds": cpu}
    if printing:
        found["arrived_bytes_per_second"] = arrived / until_last
    return found


def main() -> None:
    """Measure and print."""
    bench = Bench("stderr_rate", "Native text: cost and rate", repetitions=5, quick_repetitions=2)
    lines = (64_000_000 if bench.quick else 1_000_000_000) // LINE_BYTES
    with contextlib.ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        kernels = {
            "guarded": stack.enter_context(guarded_kernel(folders[0])),
            "bare": stack.enter_context(
                guarded_kernel(folders[1], environment={"TFGUARD_DISABLE": "1"})
            ),
        }
        setup = SETUP.format(library=str(lines_library(folders[0])), length=LINE_BYTES)
        for kernel in kernels.values():
            made = kernel.run(setup)
            assert made.error is None, made.traceback
        cases: dict[str, Callable[[], dict[str, float]]] = {}
        for name, kernel in kernels.items():
            cases[f"{name} flood"] = partial(flood, kernel, lines)
            cases[f"{name} loop"] = partial(loop, kernel, printing=True)
            cases[f"{name} quiet loop"] = partial(loop, kernel, printing=False)
        rows = bench.run(cases)
    bench.report(
        rows,
        {
            f"{number}, {case}, guarded / bare": paired(
                rows, (f"guarded {case}", number), (f"bare {case}", number)
            )
            for case, number in (
                ("flood", "writer_seconds"),
                ("flood", "process_cpu_seconds"),
                ("loop", "loop_seconds"),
                ("quiet loop", "loop_seconds"),
            )
        },
    )


if __name__ == "__main__":
    main()
