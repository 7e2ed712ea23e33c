"""What a step of a fit costs, counted instead of timed: the calls that the training thread makes.

Times differ by some per cent from one kernel to the next, by where memory happens to lie; the number of calls does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel

SETUP = """
import sys
import keras, numpy as np
x, y = np.random.rand(400 * 8, 10).astype("float32"), np.random.rand(400 * 8, 1).astype("float32")
model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
def fit(steps):
    model.fit(x[: 8 * steps], y[: 8 * steps], batch_size=8, verbose=0)
def calls(steps):
    counted = [0, 0]
    def count(frame, event, argument):
        if event == "call":
            counted[0] += 1
        elif event == "c_call":
            counted[1] += 1
    sys.setprofile(count)
    try:
        fit(steps)
    finally:
        sys.setprofile(None)
    return counted
def calls_of_a_step():
    short, long = calls(100), calls(400)
    return [(b - a) / 300 for a, b in zip(short, long)]
fit(100)
"""


@contextlib.contextmanager
def training_kernel(folder: Path, **environment: str) -> Iterator[GuardedKernel]:
    with guarded_kernel(folder, environment=environment) as kernel:
        made = kernel.run(SETUP, timeout=240)
        assert made.error is None, made.traceback
        yield kernel


def calls_of_a_step(kernel: GuardedKernel) -> tuple[float, float]:
    """Calls of Python functions and of built-in ones that the training thread makes in one step."""
    python, builtin = kernel.run("print(*calls_of_a_step())", timeout=240).stdout.split()
    return float(python), float(builtin)


def test_a_step_makes_next_to_no_call_for_us_and_none_once_unloaded(tmp_path: Path) -> None:
    with training_kernel(tmp_path / "bare", TFGUARD_DISABLE="1") as kernel:
        bare = calls_of_a_step(kernel)
    with training_kernel(tmp_path / "guarded") as kernel:
        guarded = calls_of_a_step(kernel)
        kernel.run("%unload_ext tfguard")
        unloaded = calls_of_a_step(kernel)
    assert bare[0] > 100
    assert unloaded == pytest.approx(bare, abs=1.0)
    assert guarded[0] >= bare[0] + 1.9  # it is there at all: begin and end of the step
    # Two calls; more where steps are so slow that each is written down before it starts.
    assert sum(guarded) <= 1.05 * sum(bare)
