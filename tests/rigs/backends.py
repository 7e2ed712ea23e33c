"""Stops a fit of Keras on each of its backends, for real: the message, the checkpoint, and that the kernel lives.

JAX and PyTorch are not part of the test extra: install them first, for example ``pip install jax torch``. A backend that is
not installed is not run.

    python -m tests.rigs.backends
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import write_options
from tests.crash.conftest import needed_limit
from tests.kernel.rig import GuardedKernel, guarded_kernel

BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}
LIMIT_BYTES = 2 << 30
SETUP = """\
import time
import numpy as np, keras
def new_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((100,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(4)])
    model.compile("adam", "mse")
    return model
model = new_model()
x, y = np.ones((3200, 100), "f4"), np.ones((3200, 4), "f4")
class Leak(keras.callbacks.Callback):
    kept = []
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.005)
        self.kept.append(np.ones(2_000_000))
keras.backend.backend()
"""
FIT = "model.fit(x, y, verbose=0, epochs=30, callbacks=[Leak()])"
# Each step takes a good part of a second and hundreds of MiB; without a progress bar JAX runs ahead of it.
LARGE = """\
big = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(64, 3, padding="same"),
    keras.layers.Conv2D(64, 3, padding="same"), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(4)])
big.compile("adam", "mse")
kept = []
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        kept.append(np.ones(6_000_000))
pixels = np.ones((640, 32, 32, 3), "f4")
big.fit(pixels, y[:640], batch_size=32, epochs=30, verbose=0, callbacks=[Slow()])
"""


def tried(kernel: GuardedKernel) -> Iterator[str]:
    """What was seen with one backend, a line each."""
    yield f"backend {kernel.run(SETUP, timeout=300).result}"
    ran = kernel.run(FIT, timeout=300)
    yield f"leak in a callback: {ran.error}"
    yield from ("    " + line for line in ran.traceback.splitlines()[-9:])
    found = re.findall(r'tfguard\.resume\(model, "(.+?\.npz)"\)', ran.traceback)
    if found:
        again = kernel.run(
            "Leak.kept.clear()\nimport tfguard\nagain = new_model()\n"
            f"epoch = tfguard.resume(again, {found[0]!r})\n"
            "same = all(np.array_equal(a, b) for a, b in zip(again.get_weights(), model.get_weights()))\n"
            "same, epoch, int(again.optimizer.iterations) > 0, again.fit(x, y, verbose=0).epoch"
        )
        yield f"resumed: {again.result or again.traceback[-500:]}"
    kernel.run("Leak.kept.clear()")
    ran = kernel.run(LARGE, timeout=300)
    yield f"large steps: {ran.error}"
    yield from ("    " + line for line in ran.traceback.splitlines()[-9:])
    time.sleep(10)  # what goes on after the message would end the kernel now
    yield f"lives: {kernel.run('kept.clear(); 1 + 1').result == '2'}"


def main() -> None:
    """Try the backends that the command line names, or all."""
    for backend in sys.argv[1:] or BACKENDS:
        if importlib.util.find_spec(BACKENDS[backend]) is None:
            print(f"{backend}: not installed, not run")
            continue
        with tempfile.TemporaryDirectory() as name, needed_limit(LIMIT_BYTES) as limit:
            write_options(Path(name) / "config", "soft")
            environment = {"KERAS_BACKEND": backend}
            with guarded_kernel(Path(name), environment=environment) as kernel:
                kernel.hold_stderr()
                limit.add(kernel.pid)
                for line in tried(kernel):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
