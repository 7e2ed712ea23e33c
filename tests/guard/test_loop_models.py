"""The models that a stopped training loop saves: each once, none that is gone, none without a step."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy
import pytest

from jupyter_tfguard.guard.checkpoint import Saved
from jupyter_tfguard.guard.loop_models import LoopModels
from jupyter_tfguard.guard.resume import restore_training
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


class Variable:
    """A variable with its value in NumPy."""

    def __init__(self, value: Any) -> None:
        self.value = numpy.asarray(value)
        self.shape, self.dtype = self.value.shape, self.value.dtype

    def __int__(self) -> int:
        return int(self.value)

    def assign(self, value: Any) -> None:
        self.value = numpy.array(value, copy=True).reshape(self.shape)


class Optimizer:
    """One with a slot."""

    built = True

    def __init__(self, steps: int) -> None:
        self._iterations = Variable(numpy.int64(steps))
        self.variables = [self._iterations, Variable(numpy.full(3, steps, "float32"))]


class Model:
    """One without an optimizer of its own."""

    built = True

    def __init__(self, name: str, weight: float = 1.0) -> None:
        self.name = name
        self.variables = [Variable(numpy.full((3, 2), weight, "float32"))]
        self.trainable_variables = self.variables


def saved_of(models: LoopModels, folder: Path, available_bytes: int = GIB) -> list[Any]:
    return list(models.save_all(folder, lambda: available_bytes))


def test_two_models_are_saved_in_two_files_with_the_steps_of_their_optimizers(
    tmp_path: Path,
) -> None:
    models = LoopModels()
    pairs = [(Model("maker", 2.0), Optimizer(5)), (Model("judge", 3.0), Optimizer(25))]
    for _ in range(3):  # in the loop
        for model, optimizer in pairs:
            models.keep(model, optimizer)
    found = saved_of(models, tmp_path)
    assert len({one.path for one in found}) == 2
    for one, (model, optimizer) in zip(found, pairs, strict=True):
        assert isinstance(one, Saved)
        assert "optimizer=optimizer" in one.text()
        fresh, steps = Model(model.name, 0.0), Optimizer(0)
        assert restore_training(fresh, one.path, steps) == int(optimizer._iterations)
        assert (fresh.variables[0].value == model.variables[0].value).all()
        assert (steps.variables[1].value == optimizer.variables[1].value).all()
    assert saved_of(models, tmp_path) == []


def test_what_is_gone_or_has_no_step_is_not_saved(tmp_path: Path) -> None:
    models = LoopModels()
    gone, new, first = Model("gone"), Model("new"), Optimizer(0)
    models.keep(gone, Optimizer(3))
    models.keep(new, first)
    del gone
    gc.collect()
    assert saved_of(models, tmp_path) == []
    models.keep(new, first)
    models.clear()
    assert not models
    assert list(tmp_path.iterdir()) == []


def test_the_reason_is_given_where_a_model_cannot_be_saved(tmp_path: Path) -> None:
    models, model, optimizer = LoopModels(), Model("net"), Optimizer(3)
    models.keep(model, optimizer)
    (text,) = saved_of(models, tmp_path, MIB)
    assert text.startswith("The model net was not saved: Only 1 MiB of memory are available")
    model.built = False
    models.keep(model, optimizer)
    (text,) = saved_of(models, tmp_path)
    assert "The model has no weights yet" in text
