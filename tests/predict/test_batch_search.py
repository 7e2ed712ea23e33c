"""The search for the largest batch, with real children."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel, works

SETUP = """
import numpy as np, keras
from keras import layers
from jupyter_tfguard.predict import batch_search, extrapolate
from jupyter_tfguard.predict.batch_search import largest_batch
from jupyter_tfguard.predict.trial import Ending, trial

X, Y = np.zeros((4096, 32, 32, 3), "uint8"), np.zeros((4096, 1), "float32")
ARGUMENTS = {"x": X, "y": Y, "batch_size": 1024}

def model():
    found = keras.Sequential([
        keras.Input((32, 32, 3)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(32, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(1),
    ])
    found.compile("adam", "mse")
    return found
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras and the names above."""
    with guarded_kernel(tmp_path_factory.mktemp("search"), startup_file=False) as kernel:
        works(kernel, SETUP)
        yield kernel


def test_the_batch_found_fits_and_twice_as_much_does_not(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        available = 600_000_000
        found = largest_batch(model(), ARGUMENTS, available)
        assert found.batch_size is not None and found.peak_bytes < 0.95 * available, found
        """,
    )
    works(
        keras_kernel,
        """
        again = trial(model(), ARGUMENTS, found.batch_size, limit_bytes=available)
        assert again.ending is Ending.FINISHED, again
        twice = trial(model(), ARGUMENTS, 2 * found.batch_size, limit_bytes=available)
        assert twice.ending is Ending.LIMIT or twice.peak_bytes > 0.9 * available, (found, twice)
        """,
    )
    works(
        keras_kernel,
        """
        # An equal model is not tried again.
        tried = []
        def counted(*args, **more):
            tried.append(args[2])
            return trial(*args, **more)
        batch_search.trial = counted
        assert largest_batch(model(), ARGUMENTS, available).batch_size == found.batch_size
        finished = [one.batch_size for one in found.trials if one.finished]
        assert not set(tried) & set(finished), (tried, found)
        """,
    )


def test_no_batch_fits_into_too_little(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        found = largest_batch(model(), ARGUMENTS | {"batch_size": 16}, 1_000_000)
        assert found.batch_size is None and found.peak_bytes is None
        assert {one.batch_size for one in found.trials} >= {1}, found
        """,
    )


def test_a_prediction_stops_at_the_first_batch_that_does_not_finish(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        found = extrapolate.predict(model(), ARGUMENTS, 256)
        assert [one.batch_size for one in found.trials] == [2, 32, 64, 128]
        assert found.peak_bytes > found.trials[-1].peak_bytes
        found = extrapolate.predict(model(), ARGUMENTS, 256, limit_bytes=1_000_000)
        assert [one.ending for one in found.trials] == [Ending.LIMIT]
        assert found.peak_bytes is None
        """,
    )
