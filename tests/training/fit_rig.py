"""A small model of the real Keras, and what a run of it left in the record."""

from __future__ import annotations

from typing import Any

from tests.kernel.rig import GuardedKernel, Ran

SETUP = """
import keras, numpy as np, tensorflow as tf
x = np.random.rand(96, 10).astype("float32")
y = np.random.rand(96, 1).astype("float32")
def make(**how):
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(4), keras.layers.Dense(1)], name="tiny")
    model.compile("adam", "mse", **how)
    return model
class Counts(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.epochs = self.batches = 0
    def on_epoch_end(self, epoch, logs=None): self.epochs += 1
    def on_train_batch_end(self, batch, logs=None): self.batches += 1
model = make()
"""
UNTOUCHED = """
from tensorflow.python.eager import context
assert context._context is None or context._context._context_handle is None
"""


# Each test begins with the whole allowance of events.
UNLIMITED = """
from jupyter_tfguard.kernel import current as _current
_current.current().libraries._training._allowed = 50.0
"""


class Fitted:
    """The events of the last run, and what the cell printed."""

    def __init__(self, kernel: GuardedKernel, code: str) -> None:
        kernel.run(UNLIMITED)
        before = len(kernel.recording().events)
        self.ran: Ran = kernel.run(code, timeout=180)
        recorded = kernel.recording()
        self.events = recorded.events[before:]
        self.progress: dict[str, Any] = recorded.progress or {}
        assert kernel.problems() == ""

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        found = self.all(kind)
        assert len(found) == 1, (kind, self.events, self.ran)
        return found[0]
