"""Estimates for a fit on a GPU. The GPU's memory is a stand-in (on_gpu_child.py), the trials are real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel, works
from tests.predict.test_estimate import SETUP

PRETEND = f"""
import os, types
from pathlib import Path
from jupyter_tfguard.predict import trial
from jupyter_tfguard.training.gpu_settings import eager_context
trial._CHILD = Path({str(Path(__file__).with_name("on_gpu_child.py"))!r})
os.environ["LARGEST_BATCH"] = "100"
model = cnn()
eager_context()._logical_devices.append(types.SimpleNamespace(name="/device:GPU:0", device_type="GPU"))
"""


@pytest.fixture(scope="module")
def gpu_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A guarded kernel that takes itself for one with a GPU."""
    with guarded_kernel(tmp_path_factory.mktemp("gpu")) as kernel:
        works(kernel, SETUP + PRETEND)
        yield kernel


def test_a_fit_on_a_gpu_is_measured_in_its_memory(gpu_kernel: GuardedKernel) -> None:
    works(
        gpu_kernel,
        """
        answer = tfguard.estimate(model, x, y, batch_size=64)
        assert answer.verdict is Verdict.FITS, answer
        assert answer.grade is Grade.MEASURED
        assert 64 * 64 * 64 * 32 * 4 < answer.best_bytes < 1 << 30, answer
        assert answer.available_bytes == 1 << 30
        assert "more GPU memory" in answer.text()
        assert "1.00 GiB is available of 1.00 GiB (GPU memory)." in answer.text(), answer
        """,
    )


def test_a_batch_that_the_gpu_refuses_is_extrapolated(gpu_kernel: GuardedKernel) -> None:
    works(
        gpu_kernel,
        """
        os.environ["LARGEST_BATCH"] = "2"
        answer = tfguard.estimate(model, x, y, batch_size=4)
        assert answer.grade is Grade.EXTRAPOLATED, answer
        assert 4 * 64 * 64 * 32 * 4 < answer.best_bytes < answer.high_bytes, answer
        """,
    )
