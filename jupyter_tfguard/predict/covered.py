"""Which fits an estimate covers, and the reason for each that it does not."""

from __future__ import annotations

import sys
from typing import Any

from .refusal import runs_on_gpu, runs_on_host
from .room import CannotEstimate

_KERAS_2 = "tf_keras"


def check_covered(model: Any) -> None:
    """Check that a model trains with TensorFlow on the CPU or one GPU of this process.

    Raises:
        CannotEstimate: It does not; the text says why.
    """
    reason = _reason(model)
    if reason is not None:
        raise CannotEstimate(reason)


def _reason(model: Any) -> str | None:
    if isinstance(model, type):
        return f"{model.__name__} is a class: estimate the fit of a model, {model.__name__}(...)."
    bases = [base.__module__.partition(".")[0] for base in type(model).__mro__]
    keras = sys.modules.get("keras")
    version = str(getattr(keras, "__version__", ""))
    if _KERAS_2 in bases or ("keras" in bases and not version.startswith("3")):
        return (
            "This model is of Keras 2 (tf_keras, or Keras before 3.0). Estimates cover Keras 3 only; "
            "a fit of Keras 2 is still refused if it certainly cannot fit."
        )
    if keras is None or not isinstance(model, keras.Model):
        return f"Estimates cover models of Keras 3, and this is none: {type(model).__name__}."
    if keras.backend.backend() != "tensorflow":
        return f"Estimates cover Keras with TensorFlow; here it runs on {keras.backend.backend()}."
    if getattr(model, "optimizer", None) is None:
        return "The model is not compiled: call model.compile() first."
    if runs_on_host(model) or runs_on_gpu(model):
        return None
    strategy = getattr(model, "_distribute_strategy", None)
    if strategy is None:
        return "Estimates cover fits on the CPU or one GPU; TensorFlow has created other devices here, or none yet."
    count = getattr(strategy, "num_replicas_in_sync", None)
    devices = "several devices" if count is None else f"{count} devices"
    return (
        f"This model trains on {devices} ({type(strategy).__name__}): each holds its own weights and part of the batch. "
        "Estimates cover one device."
    )
