"""When a fit is refused before its first step, and what the text says. Models and devices are made up here."""

from __future__ import annotations

import gc
import types
from typing import Any

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.batch_place import IN_ARGUMENT, PIPELINE, BatchPlace
from jupyter_tfguard.predict import own_memory, refusal
from jupyter_tfguard.predict.bound.bound import FITTING_SHARE, Bound
from jupyter_tfguard.predict.refusal import Refusal, check_fit
from jupyter_tfguard.predict.traced.quick import QuickPrediction
from jupyter_tfguard.training.plan import FitPlan

pytestmark = pytest.mark.quick
MIB, GIB = 1 << 20, 1 << 30
PIPELINED = BatchPlace(PIPELINE, "batch")


def bound(**parts: int) -> Bound:
    """A bound of a batch of 2048 with these parts."""
    names = ("copies", "conversion", "gradients", "slots", "activations", "largest")
    sizes = {f"{name}_bytes": parts.get(name, 0) for name in names}
    return Bound(batch_size=2048, unknown=(), **sizes)


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow has made its CPU, and the bound is 3 GiB."""
    devices(monkeypatch, "CPU")
    found = bound(activations=2 * GIB, largest=GIB)
    monkeypatch.setattr(refusal, "bound", lambda model, plan: found)
    monkeypatch.setattr(own_memory, "reusable_bytes", lambda: 0)


def devices(monkeypatch: pytest.MonkeyPatch, *kinds: str, made: bool = True) -> None:
    """Give TensorFlow these devices."""
    logical = [types.SimpleNamespace(device_type=kind) for kind in kinds]
    context = types.SimpleNamespace(_initialized=made, _logical_devices=logical)
    monkeypatch.setattr(own_memory, "eager_context", lambda: context)


def check(available: int, model: Any = None, place: BatchPlace = IN_ARGUMENT) -> Refusal | None:
    """With so much memory."""
    plan = FitPlan(2048, place=place)
    return check_fit(
        model or types.SimpleNamespace(optimizer="sgd"), plan, lambda: available, 2 * GIB
    )


@pytest.mark.usefixtures("on_host")
def test_a_hopeless_fit_is_refused_and_one_that_may_fit_is_not() -> None:
    assert check(3 * GIB) is None
    assert check(3 * GIB - 1) is not None
    assert check(0, types.SimpleNamespace(optimizer=None)) is None  # not compiled: Keras says so


@pytest.mark.usefixtures("on_host")
def test_the_text_has_numbers_and_what_to_do() -> None:
    found = check(int(1.6 * GIB))
    assert found is not None
    assert found.text(384) == (
        "fit() with batch_size=2048 needs at least 3.00 GiB more memory; 1.60 GiB are available (limit 2.00 GiB). "
        "Estimate by part: activations 2.00 GiB, output of a layer 1.00 GiB. "
        "With model.fit(..., batch_size=384) it should fit. To run it anyway, enter %tfguard pause first."
    )


def test_advice_follows_the_largest_part() -> None:
    copies = Refusal(bound(copies=3 * GIB, activations=MIB), GIB, None, FitPlan()).text()
    assert "read the data in batches" in copies
    assert "batch_size=2048 needs" in copies
    assert "should fit" not in copies
    weights = Refusal(bound(gradients=GIB, slots=2 * GIB), GIB, None, FitPlan()).text()
    assert "too many weights" in weights
    assert "limit" not in weights


@pytest.mark.parametrize(
    ("available", "batch"), [(GIB, 256), (100 * MIB, 8), (70 * MIB, 1), (10 * MIB, None)]
)
def test_the_batch_that_should_fit_is_a_round_number_well_below(
    available: int, batch: int | None
) -> None:
    known = bound(activations=2 * GIB, largest=GIB)
    assert known.fitting_batch(available, None) == batch
    if batch is not None:
        assert batch * known.batch_bytes / 2048 <= available * FITTING_SHARE


class Traced(QuickPrediction):
    """A traced step that needs 1 MiB for each sample."""

    def __init__(self) -> None: ...

    def largest_batch(self, available: int, limit: int) -> int | None:
        return min(available // MIB, limit) or None


@pytest.mark.parametrize(
    ("available", "count", "batch"),
    [(264, 5000, 256), (264, None, 256), (264, 200, 200), (264, 264, 264), (0, 200, None), (1 << 30, None, None)],
)  # fmt: skip
def test_no_suggested_batch_is_larger_than_the_data(
    available: int, count: int | None, batch: int | None
) -> None:
    assert Traced().fitting_batch(available * MIB, count) == batch
    known = bound(activations=2 * GIB, largest=GIB)
    assert known.fitting_batch(4 * GIB, 100) in (None, 100)


@pytest.mark.usefixtures("on_host")
def test_the_batch_is_changed_where_it_is_set() -> None:
    found = check(GIB, place=PIPELINED)
    assert found is not None
    assert "fit() with a batch of 2048 needs at least" in found.text()
    assert "With .batch(48) in the pipeline it should fit." in found.text(48)
    assert "Use a smaller .batch() in the pipeline, or a smaller model." in found.text()


@pytest.mark.usefixtures("on_host")
def test_memory_that_garbage_held_counts() -> None:
    class Model:
        """In a cycle, as models of Keras are."""

    old = Model()
    old.itself = old  # type: ignore[attr-defined]
    del old

    def available() -> int:
        return 2 * GIB if any(type(one) is Model for one in gc.get_objects()) else 4 * GIB

    assert check_fit(types.SimpleNamespace(optimizer="sgd"), FitPlan(), available) is None


@pytest.mark.usefixtures("on_host")
def test_free_memory_of_the_pool_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_memory, "reusable_bytes", lambda: 2 * GIB)
    assert check(GIB) is None
    assert check(GIB - 1) is not None


@pytest.mark.usefixtures("on_host")
def test_other_devices_are_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch, "CPU", "GPU")
    assert check(0) is None
    devices(monkeypatch, "CPU", made=False)
    assert check(0) is None
    devices(monkeypatch, "CPU")
    mirrored = types.SimpleNamespace(_distribute_strategy=object(), optimizer="sgd")
    assert check(0, mirrored) is None
    keras = types.SimpleNamespace(__version__="3.5", backend=types.SimpleNamespace())
    keras.backend.backend = lambda: "jax"
    monkeypatch.setitem(own_memory.sys.modules, "keras", keras)
    assert check(0) is None


def test_a_failure_of_ours_lets_the_fit_run(
    monkeypatch: pytest.MonkeyPatch, data_folder: object
) -> None:
    devices(monkeypatch, "CPU")
    broken = types.SimpleNamespace(built=True, optimizer="sgd")  # without weights
    assert check_fit(broken, FitPlan(), lambda: 0) is None
    assert any("bound before fit" in line for line in shield.noted_in_this_process())
