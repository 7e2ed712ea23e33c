"""What a predict keeps until its end, and when it is refused. Models are made up here."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.predict import outputs, own_memory
from jupyter_tfguard.predict.outputs import check_predict, outputs_of
from jupyter_tfguard.training.plan import FitPlan

pytestmark = pytest.mark.quick
MIB, GIB = 1 << 20, 1 << 30


def of_keras(self: Any) -> None: ...


of_keras.__module__ = "keras.src.backend.tensorflow.trainer"


def model(*shapes: tuple[int | None, ...], step: Any = of_keras) -> Any:
    """A model with outputs of these shapes."""
    tensors = [types.SimpleNamespace(shape=(None, *shape), dtype="float32") for shape in shapes]
    return type("Model", (), {"predict": of_keras, "predict_step": step, "outputs": tensors})()


@pytest.fixture(autouse=True)
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow on the CPU, with a pool that has nothing free."""
    monkeypatch.setattr(outputs, "runs_on_host", lambda model: True)
    monkeypatch.setattr(outputs, "has_pool", lambda: True)
    monkeypatch.setattr(own_memory, "reusable_bytes", lambda: 0)


def rows(count: int, **more: Any) -> FitPlan:
    return FitPlan.of({"x": np.zeros((count, 1), "uint8"), "batch_size": 32} | more)


def test_a_predict_is_refused_only_if_its_outputs_cannot_fit() -> None:
    images = model((512, 512))  # 1 MiB a row
    assert check_predict(images, rows(1000), lambda: 3001 * MIB) is None
    assert check_predict(images, rows(1000), lambda: 2999 * MIB, 4 * GIB) == (
        "predict() keeps all its outputs: 1,000 rows × 512×512 float32 = 1000 MiB, at its peak about three times as much; "
        "2.93 GiB are available (limit 4.00 GiB). Predict in pieces of 384 rows and write each to a file. "
        "To run it anyway, enter %tfguard pause first."
    )


def test_small_outputs_are_not_in_the_pool_and_count_twice() -> None:
    found = outputs_of(model((8,)), rows(10_000_000))
    assert found is not None
    assert found.need_bytes == 2 * 10_000_000 * 32 + found.input_bytes
    several = outputs_of(model((512, 512), (8,)), rows(1000))
    assert several is not None
    assert (several.row_bytes, several.copies) == (MIB + 32, 2)
    assert several.shapes == "(512×512 float32, 8 float32)"


def test_what_is_not_known_is_not_refused() -> None:
    images = model((512, 512))
    unknown: list[tuple[Any, FitPlan]] = [
        (model((None, 512)), rows(9000)),
        (model(), rows(9000)),
        (model((512, 512), step=lambda self, data: data), rows(9000)),
        (images, FitPlan.of({"x": (row for row in ()), "batch_size": 32})),
        (images, FitPlan.of({"x": object()})),
        (images, rows(9000, callbacks=[object()])),  # may end it early
    ]
    for one, plan in unknown:
        assert check_predict(one, plan, lambda: 0) is None
    limited = outputs_of(images, rows(9000, steps=3))
    assert limited is not None
    assert limited.row_count == 96
