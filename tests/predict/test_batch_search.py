"""The search for the largest batch, and predictions from smaller ones. The trials follow a law; test_trial.py has real ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jupyter_tfguard.batch_place import BatchPlace
from jupyter_tfguard.predict.trial import extrapolate, search
from jupyter_tfguard.predict.trial.search import largest_batch
from jupyter_tfguard.predict.trial.trial import Ending, Trial
from jupyter_tfguard.training.plan import FitPlan

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.quick

MB = 1_000_000
CHILD_BYTES = 250 * MB  # TensorFlow itself, which counts for the limit of a child
# One byte behind the start of a block: TensorFlow copies an array that is not aligned, wherever the block is.
UNALIGNED = np.zeros((1 << 20) + 1, "uint8")[1:].reshape(-1, 1)
DATA = FitPlan.of({"x": UNALIGNED, "batch_size": 1024})
Law = Callable[[int], int]


class Model:
    """Stands for a model of an unknown kind."""


class Children:
    """Trials by a law: bytes by batch size."""

    def __init__(self, law: Law, ending: Ending = Ending.LIMIT) -> None:
        self.law, self.ending = law, ending
        self.tried: list[int] = []

    def trial(
        self,
        model: Any,
        plan: FitPlan,
        batch_size: int,
        *,
        limit_bytes: int | None = None,
        **how: Any,
    ) -> Trial:
        self.tried.append(batch_size)
        need = self.law(batch_size)
        if limit_bytes is not None and need + CHILD_BYTES > limit_bytes:
            peak = limit_bytes - CHILD_BYTES
            return Trial(batch_size, self.ending, peak, before_bytes=CHILD_BYTES)
        return Trial(batch_size, Ending.FINISHED, need, 6, before_bytes=CHILD_BYTES)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    found = Children(lambda size: 100 * MB + MB * size)
    monkeypatch.setattr(search, "trial", found.trial)
    monkeypatch.setattr(extrapolate, "trial", found.trial)
    return found


def test_the_largest_round_batch_that_fits_is_found_with_few_trials(children: Children) -> None:
    children.law = lambda size: 20 * MB * size
    found = largest_batch(Model(), DATA, 9600 * MB)
    assert found.batch_size == 400  # a trial of 448 needs 9210 MB
    assert found.peak_bytes == pytest.approx(8000 * MB, abs=2 * MB)  # with the copy of the data
    assert found.was_tried
    assert len(found.trials) <= 6
    assert found.text().startswith(
        "batch_size=400 is the largest that fits: it needed 7.45 GiB of 8.94"
    )


def test_a_batch_for_which_a_trial_has_no_room_is_extrapolated(children: Children) -> None:
    found = largest_batch(Model(), DATA, 1000 * MB)
    assert found.batch_size == 672
    assert found.peak_bytes == pytest.approx(772 * MB, abs=2 * MB)
    assert max(one.batch_size for one in found.trials if one.finished) == 512
    assert not found.was_tried
    assert found.text().startswith("batch_size=672 is the largest that should fit: it needs about")
    piped = replace(found, place=BatchPlace("pipeline", "batch")).headline()
    assert piped.startswith("A batch of 672 is the largest that should fit")
    assert piped.endswith("To set it: .batch(672) in the pipeline.")


def test_what_a_gpu_refuses_is_not_extrapolated(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any, **limits: Any) -> Trial:
        found = children.trial(*given, **limits)
        peak = found.peak_bytes if found.finished else MB  # one large block was refused
        return dataclasses.replace(found, peak_bytes=peak, gpu_limit_bytes=1000 * MB)

    monkeypatch.setattr(search, "trial", refused)
    children.law = lambda size: (100 if size <= 300 else 2000) * MB + MB * size
    found = largest_batch(Model(), DATA, 1000 * MB)
    assert found.was_tried
    assert found.batch_size == 288
    assert found.peak_bytes == pytest.approx(388 * MB, abs=2 * MB)


def test_an_extrapolation_that_a_trial_contradicts_is_not_used(children: Children) -> None:
    children.law = lambda size: (100 if size < 200 else 500 if size < 300 else 5000) * MB
    found = largest_batch(Model(), DATA, 5000 * MB)
    assert (found.batch_size, found.was_tried) == (272, True)


def test_a_quick_estimate_saves_trials(children: Children) -> None:
    largest_batch(Model(), DATA, 1000 * MB)
    without = len(children.tried)
    children.tried.clear()
    found = largest_batch(Model(), DATA, 1000 * MB, quick=children.law)
    assert found.batch_size == 672
    assert len(children.tried) <= without


def test_finished_trials_of_an_equal_model_are_not_made_again(children: Children) -> None:
    model = Model()
    first = largest_batch(model, DATA, 1000 * MB)
    finished = {one.batch_size for one in first.trials if one.finished}
    children.tried.clear()
    assert largest_batch(model, DATA, 1000 * MB).batch_size == first.batch_size
    assert not finished & set(children.tried)


def test_no_batch_fits_into_too_little(children: Children) -> None:
    found = largest_batch(Model(), FitPlan.of({"x": UNALIGNED, "batch_size": 16}), 300 * MB)
    assert found.batch_size is None
    assert found.trials[-1].batch_size == 1
    assert found.text().startswith("No batch size fits.")


def test_a_search_ends_at_a_trial_that_fails_for_another_reason(children: Children) -> None:
    children.ending = Ending.RAISED
    children.law = lambda size: (100 if size < 500 else 5000) * MB
    found = largest_batch(Model(), DATA, 1000 * MB)
    assert found.trials[-1].ending is Ending.RAISED
    assert found.batch_size == max(one.batch_size for one in found.trials if one.finished)


def test_what_is_tried_is_shown_and_an_interrupt_names_the_best_so_far(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(model: Any, arguments: Any, size: int, *, show: Any, **how: Any) -> Trial:
        show(1, 50 * MB)
        if size > 256:
            raise KeyboardInterrupt
        return children.trial(model, arguments, size, **how)

    shown: list[str] = []
    monkeypatch.setattr(search, "trial", interrupted)
    with pytest.raises(KeyboardInterrupt):
        largest_batch(Model(), DATA, 1000 * MB, show=shown.append)
    assert "Trial 1: batch_size=128 starts." in shown
    assert "Trial 2: batch_size=512, 1 step done, 48 MiB needed. Best so far: 128." in shown
    assert shown[-1] == "Interrupted. Best so far: batch_size=128, which needs 218 MiB."


def test_a_quick_estimate_that_is_right_needs_one_trial(children: Children) -> None:
    children.law = lambda size: 200 * MB + 7 * MB * size
    found = largest_batch(Model(), DATA, 4000 * MB, quick=lambda size: 0.95 * children.law(size))
    assert [one.batch_size for one in found.trials] == [464]
    assert (found.batch_size, found.was_tried) == (464, True)


def test_a_trial_of_a_little_less_is_enough(children: Children) -> None:
    children.law = lambda size: 200 * MB + 7 * MB * size
    found = largest_batch(Model(), DATA, 4000 * MB, quick=lambda size: 1.1 * children.law(size))
    assert [one.batch_size for one in found.trials] == [400]
    assert (found.batch_size, found.was_tried) == (432, False)
    assert "batch_size=400 was, and needed 2.79 GiB." in found.text()


def test_a_batch_a_little_larger_than_the_tried_one_needs_no_trial(children: Children) -> None:
    children.law = lambda size: 200 * MB + 7 * MB * size
    found = largest_batch(Model(), DATA, 4000 * MB, quick=lambda size: 1.25 * children.law(size))
    assert len(found.trials) == 1
    assert found.batch_size is not None
    assert found.batch_size > found.trials[0].batch_size
    assert 0.75 * 3800 * MB < children.law(found.batch_size) < 3800 * MB


@pytest.mark.parametrize("step", [0, 1000])
def test_a_step_of_the_pool_that_the_quick_estimate_expects_is_tried_once(
    children: Children, step: int
) -> None:
    children.law = lambda size: (200 + 7 * size + (step if size > 370 else 0)) * MB
    found = largest_batch(
        Model(),
        DATA,
        4000 * MB,
        quick=lambda size: (200 + 7 * size + (1000 if size > 370 else 0)) * MB,
    )
    assert [one.batch_size for one in found.trials] == [368, 432]
    assert found.batch_size == (368 if step else 432)


@pytest.mark.parametrize("factor", [0.6, 0.75, 0.9, 1.2, 1.6])
def test_a_quick_estimate_that_is_wrong_costs_few_trials(children: Children, factor: float) -> None:
    children.law = lambda size: 200 * MB + 7 * MB * size
    found = largest_batch(
        Model(), DATA, 4000 * MB, quick=lambda size: 200 * MB + factor * 7 * MB * size
    )
    assert found.batch_size is not None
    assert 0.84 * 3550 * MB < children.law(found.batch_size) < 3800 * MB
    assert len(found.trials) <= 4


def test_copies_of_arrays_that_a_trial_lacks_are_counted(children: Children) -> None:
    # Keras copies the float64 array of 8 bytes a sample as 4: 400 MB, and only 6 batches of it in a trial.
    data = FitPlan.of({"x": np.zeros((1000, 100_000)), "batch_size": 10})
    children.law = lambda size: 100 * MB + 10 * MB * size
    copies = 400 * MB
    found = largest_batch(Model(), data, 1500 * MB, quick=lambda size: children.law(size) + copies)
    assert found.batch_size is not None
    assert 0.7 * 1425 * MB < children.law(found.batch_size) + copies < 1425 * MB
    assert len(found.trials) <= 2


def test_a_prediction_stops_at_the_first_batch_that_does_not_finish(children: Children) -> None:
    assert extrapolate.predict(Model(), DATA, 256) == 356 * MB
    assert children.tried == [2, 32, 64, 128]
    assert extrapolate.predict(Model(), DATA, 256, limit_bytes=390 * MB) == 356 * MB
    assert children.tried[4:] == [2, 32, 64]
    assert extrapolate.predict(Model(), DATA, 256, limit_bytes=MB) is None
    assert children.tried[7:] == [2]
