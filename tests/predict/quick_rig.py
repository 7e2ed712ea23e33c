"""A kernel in which the quick estimate is tried with real models."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.kernel.rig import GuardedKernel, guarded_kernel, works

_SETUP = """
import random
import keras, numpy as np, tensorflow as tf
from keras import layers, ops
from jupyter_tfguard.predict.traced.quick import QuickPrediction
from jupyter_tfguard.predict.traced.trace import CannotTrace
from jupyter_tfguard.training.plan import FitPlan

MB = 1_000_000

def seq(*parts, shape=(100,), optimizer="adam", **more):
    model = keras.Sequential([keras.Input(shape), *parts])
    model.compile(optimizer, "mse", **more)
    return model

def data(*shape, y=(1,)):
    return {"x": np.zeros((8, *shape), "float32"), "y": np.zeros((8, *y), "float32")}

def predicted(model, arguments):
    return QuickPrediction(model, FitPlan.of(arguments))

def alone(model, arguments):
    # without the free memory of the pool, which depends on earlier tests
    prediction = predicted(model, arguments)
    prediction._free_bytes = 0
    return prediction

def step_bytes(model, arguments, batch):
    prediction = alone(model, arguments)
    prediction._samples = None  # as many batches as can wait
    found = prediction.features(batch)
    return found.pool_bytes + found.small_bytes - found.data_bytes

def reason(model, arguments):
    try:
        predicted(model, arguments)
    except CannotTrace as error:
        return str(error)
"""


@contextlib.contextmanager
def quick_kernel(folder: Path) -> Iterator[GuardedKernel]:
    """A kernel with Keras and the functions above."""
    with guarded_kernel(folder, startup_file=False) as kernel:
        works(kernel, _SETUP)
        yield kernel
