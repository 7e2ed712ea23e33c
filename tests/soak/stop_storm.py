"""Thousands of stops at random moments: ``python -m tests.soak.stop_storm [--stops 1000] [--level soft|full] [--only NAME]``.

A real kernel trains, and the guard is told at a random moment that the memory is nearly full. Each stop must surface as the
guard's exception, and the kernel must live. Prints what else surfaced; the exit status is 1 if there was anything.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.conftest import write_options
from tests.kernel.rig import GuardedKernel, guarded_kernel

_SETUP = """\
import gc, sys, threading, time, traceback
import numpy as np, keras, tensorflow as tf
from jupyter_tfguard.levels import Levels
from jupyter_tfguard.guard.memory_guard import MemoryGuard
_guard = next(one for one in gc.get_objects() if isinstance(one, MemoryGuard))
_due, _wanted = [0.0], threading.Event()
def _trip():
    while True:
        _wanted.wait()
        _wanted.clear()
        time.sleep(_due[0])
        if (cell := _guard._cell) is not None:
            _guard._native.arm(Levels(10**15, 10**15, 0.06, 16 << 20, cell.total_bytes, own_fraction=0))
threading.Thread(target=_trip, name="tfguard-storm", daemon=True).start()
_places = []
def _delivers(seen, cell, frame, deliver=_guard._deliver):
    _places[:] = traceback.format_stack(sys._getframe(1))[-14:]
    return deliver(seen, cell, frame)
_guard._deliver = _delivers
def stop_after(seconds):
    _due[0] = seconds
    _wanted.set()
x, y = np.ones((320, 20), "f4"), np.ones((320, 1), "f4")
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
eager = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(8), keras.layers.Dense(1)])
eager.compile("adam", "mse", run_eagerly=True)
weights = tf.Variable(tf.ones((50, 50)))
@tf.function
def steps(count):
    for _ in tf.range(count):
        weights.assign(weights * 1.0000001)
def rows():
    for row in range(10**9):
        yield np.full(20, row % 7, "f4"), np.ones(1, "f4")
generated = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec(20), tf.TensorSpec(1))).batch(8)
for one in (model, eager):
    one.fit(x, y, verbose=0)
"""
_PROGRAMS = {
    "fit": "model.fit(x, y, epochs=100_000, verbose=0)",
    "fit_validated": "model.fit(x, y, epochs=100_000, validation_split=0.5, verbose=0)",
    "fit_eager": "eager.fit(x, y, epochs=100_000, verbose=0)",
    "fit_generator": "model.fit(generated, epochs=100_000, steps_per_epoch=4, verbose=0)",
    "predict": "while True: model.predict(x, verbose=0)",
    "evaluate": "while True: model.evaluate(x, y, verbose=0)",
    "traced": "while True:\n    fresh = tf.function(lambda a: tf.nn.relu(a @ a))\n    fresh(tf.ones((4, 4)))",
    "tape": "while True:\n    with tf.GradientTape() as tape:\n        loss = tf.reduce_sum(weights * weights)\n    tape.gradient(loss, weights)",
    "iterate": "while True:\n    for row in tf.data.Dataset.range(50).shuffle(10).batch(4): row.numpy()",
    "function": "while True: steps(1000)",
}
_LONGEST_SECONDS = 20
_WORKS = "bool(np.isfinite(model.fit(x, y, verbose=0).history['loss'][0]))"


def storm(kernel: GuardedKernel, stops: int, names: list[str], seed: int) -> Counter[str]:
    """Stop programs again and again; counts by program and what surfaced."""
    chance, seen = random.Random(seed), Counter[str]()
    kernel.hold_stderr()
    ran = kernel.run(_SETUP, timeout=180)
    assert ran.error is None, ran.traceback
    for number in range(stops):
        name = names[number % len(names)]
        seconds = chance.uniform(0.02, 0.1)
        request = kernel.send(f"stop_after({seconds})\n{_PROGRAMS[name]}")
        try:
            ran = kernel.finish(request, quiet_seconds=0, timeout=_LONGEST_SECONDS)
        except AssertionError:
            if not kernel.is_alive():
                raise
            kernel.manager.interrupt_kernel()  # the stop was swallowed
            ran = kernel.finish(request, quiet_seconds=0)
        seen[f"{name}: {ran.error}"] += 1
        if ran.error != "HostMemoryLimitReached":
            print(f"{name} after {seconds:.3f} s: {ran.error}\n{ran.traceback[-3000:]}", flush=True)
            print(kernel.run("print('raised at', *_places, sep='\\n')").stdout, flush=True)
        works = kernel.finish(kernel.send(_WORKS), quiet_seconds=0)
        if works.result != "True":
            seen[f"{name}: then {works.error}"] += 1
            print(f"after {name}: {works.error}\n{works.traceback[-3000:]}", flush=True)
        if number % 100 == 99:
            print(number + 1, json.dumps(seen), flush=True)
    return seen


def main() -> None:
    """Run the storm and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stops", type=int, default=1000)
    parser.add_argument("--level", choices=("soft", "full"), default="soft")
    parser.add_argument("--only", choices=tuple(_PROGRAMS), action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_options(Path(folder) / "config", options.level)
        with guarded_kernel(Path(folder)) as kernel:
            seen = storm(kernel, options.stops, options.only or list(_PROGRAMS), options.seed)
    print(json.dumps(seen, indent=2))
    sys.exit(any(not one.endswith(": HostMemoryLimitReached") for one in seen))


if __name__ == "__main__":
    main()
