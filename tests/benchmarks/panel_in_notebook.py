"""What an open ``%tfguard panel`` costs a cell: ``python tests/benchmarks/panel_in_notebook.py [--quick]``.

A Python loop of a fixed length and a fit of many steps run in turns with a panel, with a paused one, and without any, in one
guarded kernel. ``none_again`` over ``none`` is what the machine makes by itself.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.bench import Bench, paired
from tests.kernel.rig import GuardedKernel, guarded_kernel

# The case, and what makes the state that it measures.
CASES = {
    "panel": "%tfguard panel --hertz 4",
    "panel_10_hertz": "%tfguard panel --hertz 10",
    "paused": "%tfguard panel --hertz 0",
    "none": "",
    "none_again": "",
}
NUMBERS = ("loop_seconds", "loop_cpu_seconds", "fit_seconds", "fit_cpu_seconds")
SETUP = """
import time
import keras, numpy as np
x, y = np.random.rand(4000, 10).astype("float32"), np.random.rand(4000, 1).astype("float32")
model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
def loop():
    began, cpu, total = time.perf_counter(), time.process_time(), 0
    for number in range(12_000_000):
        total += number
    return time.perf_counter() - began, time.process_time() - cpu
def fit():
    began, cpu = time.perf_counter(), time.process_time()
    model.fit(x, y, batch_size=8, epochs=2, verbose=0)
    return time.perf_counter() - began, time.process_time() - cpu
loop(), fit()
"""


def measure(kernel: GuardedKernel, state: str) -> dict[str, float]:
    """Wall and processor seconds of the loop and of the fit; those of the whole process, all its threads together."""
    kernel.run("%unload_ext tfguard")
    kernel.run("%load_ext tfguard")
    if state:
        kernel.run(state)
    numbers = kernel.run("print(*loop(), *fit())", timeout=120).stdout.split()
    return dict(zip(NUMBERS, map(float, numbers), strict=True))


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "panel_in_notebook",
        "Cost of an open panel in the notebook",
        repetitions=20,
        quick_repetitions=2,
    )
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kernel = stack.enter_context(guarded_kernel(folder))
        made = kernel.run(SETUP, timeout=180)
        if made.error is not None:
            sys.exit(f"TensorFlow is needed here: {made.error}\n{made.traceback}")
        rows = bench.run({case: partial(measure, kernel, state) for case, state in CASES.items()})
    bench.report(
        rows,
        {
            f"{number}, {case} / none": paired(rows, (case, number), ("none", number))
            for number in NUMBERS
            for case in CASES
            if case != "none"
        },
    )


if __name__ == "__main__":
    main()
