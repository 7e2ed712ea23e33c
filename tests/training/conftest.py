"""A kernel with the real Keras for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.rig import GuardedKernel
from tests.training.fit_rig import SETUP, UNTOUCHED


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras imported and a small model made."""
    kernel = GuardedKernel(tmp_path_factory.mktemp("fit")).start()
    imported = kernel.run(
        "import tensorflow as tf\n%tfguard\n%load_ext tfguard\n" + UNTOUCHED, timeout=180
    )
    assert imported.error is None, imported
    made = kernel.run(SETUP, timeout=180)
    assert made.error is None, made
    yield kernel
    kernel.close()
