"""The newest checkpoint is in the recording at once: a kernel that is killed right after a save still tells of it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.kernel.rig import guarded_kernel

# Dies in the step that follows a save, before Keras calls anybody again.
SETUP = """\
import os, signal
import keras, numpy as np
class Dies(keras.Sequential):
    steps = 0
    def train_step(self, *args, **kwargs):
        self.steps += 1
        if self.steps == {last}:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train_step(*args, **kwargs)
model = Dies([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
x, y = np.zeros((64, 4), "float32"), np.zeros((64, 1), "float32")
"""


def checkpoints_of_death(folder: Path, callback: str, last: int) -> list[str]:
    """Names of the files that the journal of a killed kernel tells of, oldest first; the fit has epochs of 8 steps.

    Args:
        folder: For the kernel.
        callback: That saves.
        last: The step that the kernel dies in, from 1.
    """
    with guarded_kernel(folder) as kernel:
        assert kernel.run(SETUP.format(last=last), timeout=120).error is None
        fit = f"model.fit(x, y, batch_size=8, epochs=3, verbose=0, callbacks=[{callback}])"
        assert kernel.die(fit) == -signal.SIGKILL
        events = kernel.recording().events
        assert kernel.problems() == ""
    return [Path(event["path"]).name for event in events if event["kind"] == "checkpoint"]


@pytest.mark.parametrize(
    ("callback", "newest"),
    [
        ("keras.callbacks.ModelCheckpoint('kept-{batch:02d}.keras', save_freq=3)", "kept-06.keras"),
        ("keras.callbacks.ModelCheckpoint('each-{batch:02d}.keras', save_freq=1)", "each-06.keras"),
        ("keras.callbacks.BackupAndRestore('backup', save_freq=6)", "latest.weights.h5"),
    ],
)
def test_a_save_within_an_epoch_is_told_before_the_next_step(
    tmp_path: Path, callback: str, newest: str
) -> None:
    assert checkpoints_of_death(tmp_path, callback, last=7)[-1:] == [newest]


def test_a_save_at_the_end_of_an_epoch_is_told_before_the_next_step(tmp_path: Path) -> None:
    callback = "keras.callbacks.ModelCheckpoint('kept-{epoch}.keras')"
    assert checkpoints_of_death(tmp_path, callback, last=9) == ["kept-1.keras"]


def test_the_callbacks_are_not_kept_alive_after_the_fit(tmp_path: Path) -> None:
    with guarded_kernel(tmp_path) as kernel:
        kernel.run(SETUP.format(last=-1), timeout=120)
        ran = kernel.run(
            "import gc, weakref\n"
            "kept = keras.callbacks.ModelCheckpoint('kept.keras', save_freq=3)\n"
            "model.fit(x, y, verbose=0, callbacks=[kept])\n"
            "gone = weakref.ref(kept); del kept; gc.collect(); print(gone() is None)"
        )
    assert ran.stdout.splitlines()[-1] == "True", ran.traceback
