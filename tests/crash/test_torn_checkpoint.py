"""A kernel that is killed while it saves: the report does not lead to a torn file without a word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.crash.conftest import Kernel

FIT = """\
import os, signal, time, keras, numpy as np
class Saves(keras.callbacks.ModelCheckpoint):
    def on_epoch_end(self, epoch, logs=None):
        if {torn} and epoch == 2:  # as far as it came
            time.sleep(0.02)
            with open({path!r}, "wb") as file:
                file.write(b"PK")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        super().on_epoch_end(epoch, logs)
class Killed(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if self.epochs_seen == 2:
            os.kill(os.getpid(), signal.SIGKILL)
    epochs_seen = 0
    def on_epoch_end(self, epoch, logs=None):
        self.epochs_seen += 1
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(np.zeros((64, 4)), np.zeros(64), epochs=9, verbose=0,
          callbacks=[Saves({path!r})] + ([] if {torn} else [Killed()]))
"""


@pytest.mark.parametrize("torn", [True, False])
def test_a_checkpoint_that_was_being_written_is_doubted_and_a_whole_one_is_not(
    kernel: Kernel, tmp_path: Path, torn: bool
) -> None:
    path = str(tmp_path / "model.keras")
    kernel.start(FIT.format(torn=torn, path=path))
    checkpoint = kernel.report()["left"]["checkpoint"]
    assert checkpoint["path"] == path
    assert "load_model" in checkpoint["resume_code"]
    if torn:
        assert checkpoint["doubt"] == (
            "The file was being written again just before the kernel ended, and may be incomplete. "
            "Check that it loads."
        )
    else:
        assert checkpoint["doubt"] is None
