"""What the guard costs per training step: ``python tests/benchmarks/step_cost.py [--quick]``.

Two kernels live side by side, one guarded, one not, and train the same tiny model in turns: a fit of many steps, which
tells what a step costs, and one of a single step, which tells what a fit costs besides. ``bare_again`` is the same condition
as ``bare``: the ratio of these two is what the machine's noise alone makes.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.bench import Bench, paired
from tests.kernel.rig import GuardedKernel, guarded_kernel

STEPS = 2000
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
for _ in range(3):
    once({STEPS}), once(1)
"""


def measure(kernel: GuardedKernel) -> dict[str, float]:
    """Wall and processor seconds per step of one fit, and wall seconds of a fit of one step."""
    wall, cpu, short = kernel.run(f"print(*once({STEPS}), once(1)[0])").stdout.split()
    return {
        "step_seconds": float(wall) / STEPS,
        "cpu_seconds": float(cpu) / STEPS,
        "one_step_fit_seconds": float(short),
    }


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "step_cost", "Cost of the guard per training step", repetitions=40, quick_repetitions=5
    )
    with contextlib.ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        guarded = stack.enter_context(guarded_kernel(folders[0]))
        bare = stack.enter_context(guarded_kernel(folders[1], environment={"TFGUARD_DISABLE": "1"}))
        for kernel in (guarded, bare):
            made = kernel.run(SETUP, timeout=180)
            if made.error is not None:
                sys.exit(f"TensorFlow is needed here: {made.error}\n{made.traceback}")
        rows = bench.run(
            {
                "guarded": lambda: measure(guarded),
                "bare": lambda: measure(bare),
                "bare_again": lambda: measure(bare),
            }
        )
    bench.report(
        rows,
        {
            f"{number}, {case} / bare": paired(rows, (case, number), ("bare", number))
            for number in ("step_seconds", "cpu_seconds", "one_step_fit_seconds")
            for case in ("guarded", "bare_again")
        },
    )


if __name__ == "__main__":
    main()
