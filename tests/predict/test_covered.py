"""The reason for each fit that an estimate does not cover. Keras and its models are made up here."""

from __future__ import annotations

import types
from typing import Any

import pytest

from jupyter_tfguard.predict import estimate
from jupyter_tfguard.predict.estimate import check_covered
from jupyter_tfguard.predict.own_memory import CannotEstimate

pytestmark = pytest.mark.quick


class Model:
    """A compiled model."""

    optimizer: Any = "adam"


@pytest.fixture(autouse=True)
def keras(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Keras 3 on TensorFlow, which has made its CPU."""
    backend = types.SimpleNamespace(backend=lambda: "tensorflow")
    made = types.SimpleNamespace(__version__="3.15.1", Model=Model, backend=backend)
    monkeypatch.setitem(estimate.sys.modules, "keras", made)
    monkeypatch.setattr(estimate, "runs_on_gpu", lambda model: False)
    monkeypatch.setattr(
        estimate, "runs_on_host", lambda model: getattr(model, "_distribute_strategy", None) is None
    )
    return made


def reason(model: Any) -> str:
    with pytest.raises(CannotEstimate) as raised:
        check_covered(model)
    return str(raised.value)


def test_a_model_of_keras_3_on_the_cpu_is_covered() -> None:
    check_covered(Model())


def test_keras_2_is_named(keras: types.SimpleNamespace) -> None:
    legacy = type("Sequential", (), {"__module__": "tf_keras.src.engine.sequential"})
    assert reason(legacy()).startswith("This model is of Keras 2 (tf_keras, or Keras before 3.0).")
    keras.__version__ = "2.15.0"
    old = type("Sequential", (Model,), {"__module__": "keras.src.engine.sequential"})
    assert reason(old()).startswith("This model is of Keras 2")


def test_what_is_no_model_of_keras_is_named() -> None:
    assert reason(42) == "Estimates cover models of Keras 3, and this is none: int."
    assert reason(Model) == "Model is a class: estimate the fit of a model, Model(...)."


def test_other_backends_and_devices_are_named(keras: types.SimpleNamespace) -> None:
    keras.backend.backend = lambda: "jax"
    assert reason(Model()) == "Estimates cover Keras with TensorFlow; here it runs on jax."
    keras.backend.backend = lambda: "tensorflow"
    model, strategy = Model(), type("MirroredStrategy", (), {"num_replicas_in_sync": 2})
    model._distribute_strategy = strategy()  # type: ignore[attr-defined]
    assert reason(model) == (
        "This model trains on 2 devices (MirroredStrategy): each holds its own weights and part of the batch. "
        "Estimates cover one device."
    )
    model.optimizer = None
    assert "not compiled" in reason(model)
