"""What a fit works on, told without touching its data; and the checkpoints it leaves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.training.checkpoints import CheckpointWatch
from jupyter_tfguard.training.models import describe_model, parameter_count
from jupyter_tfguard.training.plan import FitPlan

pytestmark = pytest.mark.quick


def batch(**arguments: Any) -> tuple[Any, Any, Any]:
    plan = FitPlan.of(arguments)
    return plan.batch_size, plan.batch_shape, plan.batch_dtype


def test_arrays_report_size_shape_and_type() -> None:
    x = np.zeros((500, 10, 3), "float32")
    assert batch(x=x, batch_size=128) == (128, [128, 10, 3], "float32")
    assert batch(x=x, batch_size=None) == (32, [32, 10, 3], "float32")
    assert batch(x=x[:7], batch_size=128) == (128, [7, 10, 3], "float32")
    assert batch(x={"a": x, "b": x}, batch_size=8) == (8, [8, 10, 3], "float32")
    assert batch(x=[x, x], batch_size=np.int64(8)) == (8, [8, 10, 3], "float32")


def test_what_is_not_known_is_unknown() -> None:
    assert batch(x=None) == (None, None, None)
    assert batch(x=(n for n in range(3))) == (None, None, None)
    assert batch(x=object(), batch_size=4) == (None, None, None)


def test_a_sequence_is_asked_for_its_batch_size_only_where_it_keeps_one() -> None:
    class Kept:
        def __init__(self) -> None:
            self.batch_size = 64

        def __getitem__(self, index: int) -> Any:
            raise AssertionError("data was touched")

    class Computed:
        @property
        def batch_size(self) -> int:
            raise AssertionError("user code was run")

    assert batch(x=Kept())[0] == 64
    assert batch(x=Computed())[0] is None


def test_a_data_loader_is_no_array() -> None:
    # Torch keeps the size in an attribute of the instance; its classes are not all arrays.
    loader = type("DataLoader", (), {"__module__": "torch.utils.data.dataloader"})()
    loader.batch_size = 40
    assert batch(x=loader) == (40, None, None)


def test_an_unbuilt_model_has_no_parameter_count() -> None:
    assert parameter_count(SimpleNamespace(built=False, weights=[])) is None
    built = SimpleNamespace(
        built=True, weights=[np.ones((3, 4)), np.ones(())], name="net", optimizer=None
    )
    assert parameter_count(built) == 13
    assert describe_model(built) == {"model_name": "net", "parameter_count": 13, "optimizer": None}


@pytest.mark.parametrize(
    ("module", "name"), [("keras.src.trainers.trainer", "Adam"), ("__main__", None)]
)
def test_the_optimizer_is_named_unless_the_users_own_compile_chose_it(
    module: str, name: str | None
) -> None:
    def compiles(self: Any) -> None: ...

    compiles.__module__ = module
    adam = type("Adam", (), {})()
    scaled = type("LossScaleOptimizer", (), {"inner_optimizer": adam})()
    for optimizer in (adam, scaled):
        model = type("Model", (), {"compile": compiles, "optimizer": optimizer})()
        assert describe_model(model)["optimizer"] == name


class ModelCheckpoint:
    def __init__(self, filepath: str) -> None:
        self.filepath = filepath


class Mine(ModelCheckpoint):
    pass


def touch(path: Path, when: float) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    os.utime(path, (when, when))


def test_a_checkpoint_is_reported_once_and_again_when_it_is_written_again(tmp_path: Path) -> None:
    path, began = tmp_path / "best.keras", time.time()
    touch(path, began - 60)
    watch = CheckpointWatch([Mine(str(path)), object()], since=began)
    assert watch.poll() == []  # it is from an earlier run
    touch(path, began + 1)
    assert [(w.path, w.written) for w in watch.poll()] == [(str(path), pytest.approx(began + 1))]
    assert watch.poll() == []
    touch(path, began + 2)
    assert len(watch.poll()) == 1


def test_the_newest_of_a_numbered_row_counts(tmp_path: Path) -> None:
    began = time.time()
    watch = CheckpointWatch(
        [ModelCheckpoint(str(tmp_path / "m-{epoch:02d}-{val_loss:.2f}.keras"))], since=began
    )
    touch(tmp_path / "m-01-0.50.keras", began + 1)
    touch(tmp_path / "m-02-0.40.keras", began + 2)
    touch(tmp_path / "other-03.keras", began + 3)
    assert [Path(w.path or "").name for w in watch.poll()] == ["m-02-0.40.keras"]


def test_tensorflows_own_format_is_known_by_its_index(tmp_path: Path) -> None:
    began = time.time()
    watch = CheckpointWatch([ModelCheckpoint(str(tmp_path / "weights"))], since=began)
    touch(tmp_path / "weights.data-00000-of-00001", began + 1)
    assert watch.poll() == []
    touch(tmp_path / "weights.index", began + 1)
    assert [w.path for w in watch.poll()] == [str(tmp_path / "weights")]


@pytest.mark.parametrize(
    "path", ["gs://bucket/m.keras", "{epoch}/m.keras", "/no/such/folder/m.keras"]
)
def test_a_place_that_cannot_be_looked_at_is_no_error(path: str) -> None:
    assert CheckpointWatch([ModelCheckpoint(path)], since=0.0).poll() == []
