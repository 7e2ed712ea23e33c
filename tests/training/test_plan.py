"""Where the batch of a run is set, and how it is changed there; the data are made up here.

The forms of tf.data pipelines are in tests/bench/pipelines.py, and tried in tests/predict/test_estimate.py.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.batch_place import IN_ARGUMENT, BatchPlace
from jupyter_tfguard.training.plan import FitPlan

pytestmark = pytest.mark.quick


class Train:
    """As a PyDataset of the user's."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("data was read")

    def __len__(self) -> int:
        raise AssertionError("the user's code was run")


def numbers(arguments: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    plan = FitPlan.of(arguments)
    return plan.batch_size, plan.first_batch, plan.sample_count


def changed(size: int | None = 4, **arguments: Any) -> str:
    return FitPlan.of(arguments).place.change("fit", size)


def test_the_batch_of_arrays_is_set_by_the_argument() -> None:
    x = np.zeros((500, 3))
    assert numbers({"x": x}) == (32, 32, 500)
    assert numbers({"x": x, "batch_size": 800}) == (800, 500, 500)
    assert numbers({"x": x, "batch_size": 64, "validation_split": 0.5}) == (64, 64, 250)
    assert numbers({"x": x, "steps_per_epoch": 5}) == (100, 100, 500)
    assert numbers({"x": x, "steps": 5}) == (100, 100, 500)
    assert changed(x=x) == "model.fit(..., batch_size=4)"
    assert changed(None, x=x) == "a smaller batch_size"
    assert FitPlan.of({"x": x}).place.code("predict", 4) == "model.predict(..., batch_size=4)"


def test_fit_ignores_the_argument_for_data_that_come_in_batches() -> None:
    dataset = Train(batch_size=64)
    plan = FitPlan.of({"x": dataset, "batch_size": 8})
    assert (plan.batch_size, plan.place) == (64, BatchPlace("method", "Train"))
    assert FitPlan.of({"x": Train(), "batch_size": 8}).batch_size is None
    assert changed(x=dataset) == "batches of 4 in Train.__getitem__"
    assert FitPlan.of({"x": dataset}).place.code("fit", 4) is None
    loader = type("DataLoader", (), {"__module__": "torch.utils.data.dataloader"})()
    loader.batch_size = 40
    assert FitPlan.of({"x": loader, "batch_size": 8}).batch_size == 40
    assert changed(x=loader) == "DataLoader(..., batch_size=4)"
    endless = (n for n in range(3))
    assert FitPlan.of({"x": endless, "batch_size": 8}).batch_size is None
    assert changed(x=endless) == "batches of 4 from the generator"
    assert changed(None, x=endless) == "smaller batches from the generator"
    assert next(endless) == 0


@pytest.mark.parametrize("x", [None, [], {}, [[1.0, 2.0]] * 1000, "text", b"", object(), 3])
def test_what_is_no_data_has_no_plan(x: Any) -> None:
    assert FitPlan.of({"x": x, "batch_size": 8}).batch_size is None


@pytest.mark.parametrize(
    "recorded",
    [None, "pipeline", {}, {"kind": "other", "name": ""}, {"kind": "pipeline", "name": 3}, {"kind": "pipeline", "name": "a\nb"}],
)  # fmt: skip
def test_a_recording_without_a_place_is_read_as_one_of_an_earlier_version(recorded: object) -> None:
    assert BatchPlace.of(recorded) == IN_ARGUMENT


def test_a_recorded_place_has_the_words_of_the_fit() -> None:
    place = BatchPlace("function", "image_dataset_from_directory")
    read = BatchPlace.of(asdict(place))
    assert read == place
    assert read.change("fit", 48) == "batch_size=48 of image_dataset_from_directory"
    assert read.code("fit", 48) == "image_dataset_from_directory(..., batch_size=48)"
    assert read.stated(64) == "batch_size=64"
    assert BatchPlace("pipeline", "padded_batch").stated(64) == "a batch of 64"
