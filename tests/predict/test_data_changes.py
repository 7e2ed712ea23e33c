"""Memory that data need without a reason."""

from __future__ import annotations

import pytest

from jupyter_tfguard.predict.data_changes import data_changes
from jupyter_tfguard.units import MIB
from tests.kernel.rig import GuardedKernel, works

np = pytest.importorskip("numpy")


@pytest.mark.quick
def test_a_large_array_of_float64_is_named_with_its_conversion() -> None:
    wide = np.zeros((64, MIB), "float64")
    found = {change.text: change.saved_bytes for change in data_changes({"x": wide})}
    assert found["x is float64: Keras converts the whole array. Create it as float32."] == 256 * MIB


@pytest.mark.quick
def test_small_data_need_no_change() -> None:
    assert list(data_changes({"x": np.zeros((64, 100), "float64"), "y": np.zeros(64)})) == []


def test_buffers_of_a_dataset_are_named_with_their_bytes(kernel: GuardedKernel) -> None:
    works(
        kernel,
        """
        import tensorflow as tf
        from jupyter_tfguard.predict.data_changes import data_changes
        images = tf.data.Dataset.range(5000).map(lambda n: tf.zeros((256, 256, 3)))
        def changes(data):
            return [(change.text, change.saved_bytes) for change in data_changes({"x": data})]
        each = 256 * 256 * 3 * 4
        (shuffled,) = changes(images.shuffle(1000).batch(32).prefetch(2))
        assert shuffled[0].startswith("shuffle(1000) holds 1,000 elements of 768 KiB"), shuffled
        assert shuffled[1] == 1000 * each
        (cached,) = changes(images.cache().batch(32))
        assert cached[0].startswith("cache() keeps all 5,000 elements in memory"), cached
        assert cached[1] == 5000 * each
        assert changes(images.cache("/tmp/never-read").batch(32)) == []
        assert changes(tf.data.Dataset.range(10**6).shuffle(10**6).batch(32)) == []
        """,
    )
