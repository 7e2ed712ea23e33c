"""What the guard costs per training step: ``python tests/bench/step_cost.py [--quick]``.

A tiny model is trained in turns with and without the guard: a fit of many steps, which tells what a step costs, one of a single
step, which tells what a fit costs besides, and calls of ``train_on_batch`` and of ``predict`` with one row. Two processes of the same program differ by some per cent, by where their
memory happens to lie; so the turns are taken in one kernel, which began guarded and in which the guard is unloaded and loaded
again. ``unloaded_again`` over ``unloaded`` is what the machine makes by itself. That nothing of the guard is left after
unloading shows in tests/kernel/test_step_calls.py. Every few turns there is a new kernel.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench import Bench, paired
from tests.kernel.rig import GuardedKernel, guarded_kernel

STEPS = 500
TURNS_OF_A_KERNEL = 20
# What makes the state that a case measures.
CASES = {
    "guarded": "%load_ext tfguard",
    "unloaded": "%unload_ext tfguard",
    "unloaded_again": "%unload_ext tfguard",
}
SETUP = f"""
import time
import keras, numpy as np
x, y = np.random.rand({STEPS} * 8, 10).astype("float32"), np.random.rand({STEPS} * 8, 1).astype("float32")
model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
def once(steps):
    began, cpu = time.perf_counter(), time.process_time()
    model.fit(x[: 8 * steps], y[: 8 * steps], batch_size=8, verbose=0)
    return time.perf_counter() - began, time.process_time() - cpu
def each(count, call):
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count
def train_on_batch():
    model.train_on_batch(x[:8], y[:8])
def predict():
    model.predict(x[:1], verbose=0)
for _ in range(3):
    once({STEPS}), once(1), each(20, train_on_batch), each(2, predict)
"""


def measure(kernel: GuardedKernel) -> dict[str, float]:
    """Wall and processor seconds per step of one fit; wall seconds of a fit of one step, and of single calls."""
    code = f"print(*once({STEPS}), once(1)[0], each(200, train_on_batch), each(10, predict))"
    wall, cpu, short, batch, row = kernel.run(code).stdout.split()
    return {
        "step_seconds": float(wall) / STEPS,
        "cpu_seconds": float(cpu) / STEPS,
        "one_step_fit_seconds": float(short),
        "train_on_batch_seconds": float(batch),
        "predict_row_seconds": float(row),
    }


class Kernels:
    """A kernel in which the model is built; a new one after some turns."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._kernel: GuardedKernel
        self._measured = 0

    def measure(self, case: str) -> dict[str, float]:
        """Numbers of one turn."""
        if self._measured % (len(CASES) * TURNS_OF_A_KERNEL) == 0:
            self.close()
            self._start()
        self._measured += 1
        self._kernel.run(CASES[case])
        recordings = len(list(self._kernel.data.glob("recordings/*")))
        if recordings != (case == "guarded"):
            sys.exit(f"{recordings} recordings in the turn of {case}: the guard is not as wanted")
        return measure(self._kernel)

    def _start(self) -> None:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._kernel = self._stack.enter_context(guarded_kernel(folder))
        made = self._kernel.run(SETUP, timeout=180)
        if made.error is not None:
            sys.exit(f"TensorFlow is needed here: {made.error}\n{made.traceback}")

    def close(self) -> None:
        """End it."""
        self._stack.close()


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "step_cost", "Cost of the guard per training step", repetitions=160, quick_repetitions=4
    )
    with contextlib.closing(Kernels()) as kernels:
        rows = bench.run({case: partial(kernels.measure, case) for case in CASES})
    bench.report(
        rows,
        {
            f"{number}, {case} / unloaded": paired(rows, (case, number), ("unloaded", number))
            for number in (
                *("step_seconds", "cpu_seconds", "one_step_fit_seconds"),
                *("train_on_batch_seconds", "predict_row_seconds"),
            )
            for case in CASES
            if case != "unloaded"
        },
    )


if __name__ == "__main__":
    main()
