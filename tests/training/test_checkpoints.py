"""A checkpoint of the end of an epoch is in the recording before the next step: a kernel that is killed then still names it."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.kernel.rig import guarded_kernel

# Epochs of 8 steps. Dies in the step that follows a save, before Keras calls anybody again.
SETUP = """\
import os, signal
import keras, numpy as np
class Dies(keras.Sequential):
    steps = 0
    def train_step(self, *args, **kwargs):
        self.steps += 1
        if self.steps == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train_step(*args, **kwargs)
model = Dies([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
x, y = np.zeros((64, 4), "float32"), np.zeros((64, 1), "float32")
kept = keras.callbacks.ModelCheckpoint('kept-{epoch}.keras')
"""


def test_a_save_at_the_end_of_an_epoch_is_recorded_before_the_next_step(tmp_path: Path) -> None:
    with guarded_kernel(tmp_path) as kernel:
        assert kernel.run(SETUP, timeout=120).error is None
        fit = "model.fit(x, y, batch_size=8, epochs=3, verbose=0, callbacks=[kept])"
        assert kernel.die(fit) == -signal.SIGKILL
        saved = [event for event in kernel.recording().events if event["kind"] == "checkpoint"]
        assert kernel.problems() == ""
    assert [Path(event["path"]).name for event in saved] == ["kept-1.keras"]
