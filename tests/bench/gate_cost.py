"""What the allocation gate costs: ``python tests/bench/gate_cost.py [--quick]``.

Two programs that allocate much run in turns, with the gate armed as in a cell and with everything restored, in one process: a fit whose
steps make and drop tensors of megabytes, and NumPy arrays of 4 MB. ``off_again`` over ``off`` is what the machine makes by itself.
Processor time of the process, so that other programs count little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from jupyter_tfguard.guard.native import NativeGuard
from jupyter_tfguard.levels import Levels
from jupyter_tfguard.memory.groups import memory_groups
from jupyter_tfguard.units import MIB
from tests.bench.bench import Bench, paired

CASES = ("on", "off", "off_again")
SIGNAL = signal.SIGRTMIN + 9
BATCH, WIDTH, STEPS = 256, 2048, 6


def arrays() -> None:
    """4,000 arrays of 4 MB, each written once."""
    for _ in range(4000):
        np.ones(MIB, "f4")


def make_fit() -> Callable[[], object]:
    """A fit with activations of 2 MB and weights of 16 MB."""
    import keras

    model = keras.Sequential(
        [keras.Input((WIDTH,)), *(keras.layers.Dense(WIDTH, "relu") for _ in range(3))]
    )
    model.compile("sgd", "mse")
    data = np.random.default_rng(1).random((BATCH * STEPS, WIDTH), "f4")
    return partial(model.fit, data, data, batch_size=BATCH, verbose=0)


class Switch:
    """The gate of this process, and the programs."""

    def __init__(self) -> None:
        self._native = NativeGuard.load(memory_groups(os.getpid()))
        self._on = False
        signal.signal(SIGNAL, lambda number, frame: None)
        self._programs = {"arrays_cpu_seconds": arrays, "fit_cpu_seconds": make_fit()}
        for case in CASES:
            self.measure(case)  # the first runs take longer

    def measure(self, case: str) -> dict[str, float]:
        """Processor seconds of each program."""
        self._set(case == "on")
        found = {}
        for name, program in self._programs.items():
            began = time.process_time()
            program()
            found[name] = time.process_time() - began
        return found

    def _set(self, on: bool) -> None:
        if on and not self._on:
            self._native.start(SIGNAL)
            parts = self._native.gate()
            if any(parts[name] is not None for name in ("numpy", "python", "tensorflow")):
                sys.exit(f"the gate is not armed: {parts}")
            total, left = self._native.total_bytes(), self._native.available_bytes()
            self._native.arm(Levels.of(total).for_cell(left))
        elif self._on and not on:
            self._native.stop()
        self._on = on


def main() -> None:
    """Measure and print."""
    bench = Bench("gate_cost", "Cost of the allocation gate", repetitions=40, quick_repetitions=3)
    switch = Switch()
    rows = bench.run({case: partial(switch.measure, case) for case in CASES})
    bench.report(
        rows,
        {
            f"{number}, {case} / off": paired(rows, (case, number), ("off", number))
            for number in ("arrays_cpu_seconds", "fit_cpu_seconds")
            for case in ("on", "off_again")
        },
    )


if __name__ == "__main__":
    main()
