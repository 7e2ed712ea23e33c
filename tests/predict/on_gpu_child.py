"""The process of a trial in which TensorFlow's pool of host memory stands for that of a GPU: ``trial_child.py`` does the rest.

TensorFlow says how much memory the GPU has, as it does on a machine with a card. Batches larger than ``LARGEST_BATCH`` of the
environment do not fit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.predict.trial import trial_child

CREATED = (
    "I0000 00:00:1762253213.310854  475186 gpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/device:GPU:0 "
    "with 1024 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3080, pci bus id: 0000:0b:00.0, compute capability: 8.6\n"
)
measured = trial_child._gpu_memory


def on_pool(report: Callable[..., None], log: int) -> Callable[[], int]:
    """Read the pool of host memory."""
    import keras
    import tensorflow as tf
    from tensorflow.python.eager import context

    assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert os.environ.get("CUDA_VISIBLE_DEVICES") != "-1"

    def info(device: str) -> Any:
        return context.pywrap_tfe.TFE_GetMemoryInfo(context.context()._context_handle, "CPU:0")

    def reset(device: str) -> None:
        context.pywrap_tfe.TFE_ResetMemoryStats(context.context()._context_handle, "CPU:0")

    class Card(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_begin(self, logs: Any = None) -> None:
            raise tf.errors.ResourceExhaustedError(None, None, "Out of memory")

    fit = keras.Model.fit

    def fit_on_card(self: Any, *given: Any, batch_size: int, callbacks: Any, **others: Any) -> Any:
        full = [Card()] if batch_size > int(os.environ["LARGEST_BATCH"]) else []
        return fit(self, *given, batch_size=batch_size, callbacks=[*callbacks, *full], **others)

    keras.Model.fit = fit_on_card
    memory = tf.config.experimental
    memory.get_memory_info, memory.reset_memory_stats = info, reset
    os.write(2, CREATED.encode())
    return measured(report, log)


trial_child._gpu_memory = on_pool
trial_child.main(int(sys.argv[1]), int(sys.argv[2]))
