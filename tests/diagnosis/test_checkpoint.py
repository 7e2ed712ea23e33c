"""The last checkpoint, and the code that goes on from it: right for each kind of file, and none where the kind is not known."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.checkpoint import doubt, last_checkpoint, resume_code
from jupyter_tfguard.diagnosis.evidence import Evidence

pytestmark = pytest.mark.quick


def code(path: str, *, versions: dict[str, str] | None = None, **told: object) -> str | None:
    """The code for a checkpoint that was seen after the third epoch of ten."""
    events: list[dict[str, Any]] = [
        {"kind": "fit_start", "fit_id": 1, "epochs": 10},
        *({"kind": "epoch_end", "epoch": n, "logs": {}} for n in (1, 2, 3)),
        {"kind": "checkpoint", "path": path, "written": 1.0, **told},
    ]
    seen = Evidence({"kernel": {"events": events, "header": {"versions": versions or {}}}})
    found = last_checkpoint(seen)
    assert found is not None
    text = resume_code(seen, found)
    if text is not None:
        ast.parse(text)  # it is Python, whatever the path is
    return text


def test_a_whole_model_is_loaded() -> None:
    assert code("/runs/model.keras") == (
        "import keras\n"
        "model = keras.models.load_model('/runs/model.keras')\n"
        "model.fit(..., initial_epoch=3, epochs=10)"
    )


def test_weights_are_loaded_into_a_model_that_is_made_as_before() -> None:
    assert code("/runs/best.weights.h5") == (
        "# create and compile the model as before\n"
        "model.load_weights('/runs/best.weights.h5')\n"
        "model.fit(..., initial_epoch=3, epochs=10)"
    )


def test_a_backup_goes_on_by_itself_from_its_folder() -> None:
    for path in ("/runs/backup/latest.weights.h5", "/runs/backup/chief"):
        found = code(path, by="BackupAndRestore", weights_only=True)
        assert found is not None
        assert "BackupAndRestore('/runs/backup')" in found
        assert "initial_epoch" not in found
        assert "epochs=10" in found


def test_the_file_of_a_stop_is_restored_by_us() -> None:
    found = code("/runs/tfguard-stop-m.npz", by="tfguard", weights_only=False)
    assert found is not None
    assert "epoch = tfguard.resume(model, '/runs/tfguard-stop-m.npz')" in found
    assert "initial_epoch=epoch, epochs=10" in found


@pytest.mark.parametrize(
    ("weights_only", "wanted"), [(True, "load_weights"), (False, "load_model")]
)
def test_a_name_that_says_nothing_is_named_by_the_callback(weights_only: bool, wanted: str) -> None:
    for path in ("/runs/model.h5", "/runs/ckpt-3"):
        found = code(path, by="ModelCheckpoint", weights_only=weights_only)
        assert found is not None
        assert wanted in found


def test_a_file_of_an_unknown_kind_has_no_code() -> None:
    assert code("/runs/model.h5") is None
    assert code("/runs/ckpt-3", weights_only="yes") is None


def test_a_path_that_was_redacted_has_no_code() -> None:
    assert code("/runs/token=[redacted]/model.keras") is None


@pytest.mark.parametrize("path", ["/a'b/m.keras", '/a"b\\/m.keras', "/a\n');import os#/m.keras"])
def test_a_path_with_quotes_stays_a_text(path: str) -> None:
    found = code(path)
    assert found is not None
    tree = ast.parse(found)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert path in texts
    assert sum(isinstance(node, ast.Import) for node in ast.walk(tree)) == 1


def test_the_older_keras_beside_keras_3_is_called_by_its_own_name() -> None:
    found = code("/runs/model.keras", versions={"tf_keras": "2.21.0", "keras": "3.15.0"})
    assert found is not None
    assert "tf.keras.models.load_model" in found


def test_the_epoch_is_that_of_the_fit_that_wrote_it() -> None:
    events = [
        {"kind": "epoch_end", "epoch": 9},
        {"kind": "fit_start", "fit_id": 2},
        {"kind": "checkpoint", "path": "/m.keras"},
        {"kind": "epoch_end", "epoch": 1},
    ]
    seen = Evidence({"kernel": {"events": events}})
    found = last_checkpoint(seen)
    assert found is not None
    assert found.epoch is None
    assert resume_code(seen, found) == (
        "import keras\nmodel = keras.models.load_model('/m.keras')\nmodel.fit(...)"
    )


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, None),  # nobody looked, or the disk did not answer
        ({"modified": 1000.000001}, None),
        ({"modified": 1030.0}, "incomplete"),
        ({"modified": 5000.0}, "another run"),
        ({"modified": None}, "not found"),
        ({"modified": "soon"}, None),
    ],
    ids=str,
)
def test_a_file_that_changed_since_it_was_seen_whole_is_doubted(
    file: object, said: str | None
) -> None:
    event = {"kind": "checkpoint", "path": "/runs/m.keras", "written": 1000.0}
    bundle = {
        "identity": {"died": 1060.0},
        "kernel": {"events": [event]},
        "checkpoint_file": file,
    }
    seen = Evidence(bundle)
    found = last_checkpoint(seen)
    assert found is not None
    told = doubt(seen, found)
    assert (told is None) if said is None else (told is not None and said in told)
