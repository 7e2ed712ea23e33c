"""Which save a stopped cell was in, and which file is incomplete."""

from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy
import pytest

from jupyter_tfguard.guard.error import is_refusal
from jupyter_tfguard.guard.saving import find_save, frames_of, stack
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.quick


class Stopped(MemoryError):
    """Raised in the middle of a save."""


def made(file: str, function: str, arguments: str, body: str) -> Any:
    """A function of another library: only its name and its file count."""
    space: dict[str, Any] = {"Stopped": Stopped}
    exec(compile(f"def {function}({arguments}):\n    {body}", file, "exec"), space)
    return space[function]


def test_the_file_that_a_save_was_writing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    path.write_text("an older file")
    os.utime(path, (1.0, 1.0))
    began = wait_until(lambda: (now := time.time()) > os.stat(path).st_ctime + 0.1 and now)
    body = "filepath.write_text('half'); raise Stopped"
    inner = made("/x/keras/src/saving/saving_lib.py", "save_model", "model, filepath", body)
    outer = made(
        "/x/keras/src/saving/saving_api.py",
        "save_model",
        "model, filepath, inner",
        "inner(model, filepath)",
    )
    with pytest.raises(Stopped) as raised:
        outer(None, path, inner)
    found = find_save(frames_of(raised.value), began)
    assert found is not None
    assert (found.call, found.path) == ("model.save", str(path))
    assert f"{path} is incomplete now" in found.incomplete()
    # Some file systems do not know when a file was created.
    assert found.was_older in (True, None)
    assert "older file of that name" in found.incomplete()
    assert "save_weights" in found.advice()


def test_a_save_is_found_although_closing_its_file_failed_and_keras_removed_its_frames(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.keras"
    began = time.time()
    close = made("/x/h5py/files.py", "close", "", "raise ValueError('closed file')")
    write = made("/x/h5py/files.py", "write", "", "raise Stopped")
    body = "filepath.write_text('half')\n    try:\n        write()\n    finally:\n        close()"
    inner = made("/x/keras/src/saving/saving_api.py", "save_model", "filepath, write, close", body)

    def filtered() -> None:
        try:
            inner(path, write, close)
        except ValueError as error:
            trace = error.__traceback__
            assert trace is not None
            while trace.tb_next is not None:
                trace = trace.tb_next
            compiled = types.TracebackType(None, sys._getframe(), 0, 1)  # knows no frame of Keras
            kept = types.TracebackType(compiled, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
            raise error.with_traceback(kept) from None

    with pytest.raises(ValueError, match="closed file") as raised:
        filtered()
    assert is_refusal(raised.value)
    found = find_save(frames_of(raised.value), began)
    assert found is not None
    assert (found.call, found.path) == ("model.save", str(path))


def test_a_new_file_replaced_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new.npz"
    body = "file.write_text('half'); raise Stopped"
    save = made("/x/numpy/lib/_npyio_impl.py", "savez", "file", body)
    began = time.time()
    with pytest.raises(Stopped) as raised:
        save(path)
    found = find_save(frames_of(raised.value), began)
    assert found is not None
    assert (found.path, found.was_older in (False, None)) == (str(path), True)


def test_a_file_that_was_not_opened_yet_is_not_called_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    path.write_text("an older file")
    os.utime(path, (1.0, 1.0))
    save = made(
        "/x/keras/src/saving/saving_api.py", "save_model", "model, filepath", "raise Stopped"
    )
    with pytest.raises(Stopped) as raised:
        save(None, str(path))
    found = find_save(frames_of(raised.value), time.time())
    assert found is not None
    assert found.path is None
    assert found.incomplete() == ""


class Value:
    """An array whose conversion shows the stack."""

    def __array__(self, *given: Any, **named: Any) -> Any:
        self.found = find_save(stack(sys._getframe()), time.time())
        return numpy.zeros(3)


@pytest.mark.parametrize(
    ("call", "name"),
    [("savez", "np.savez"), ("savez_compressed", "np.savez_compressed"), ("save", "np.save")],
)
def test_numpy_of_this_version_is_recognised(tmp_path: Path, call: str, name: str) -> None:
    value = Value()
    getattr(numpy, call)(tmp_path / "file", value)
    assert value.found is not None
    assert value.found.call == name


def test_the_functions_of_this_keras_are_where_they_are_searched_for() -> None:
    # Keras is not imported here: its source is enough.
    keras = Path(numpy.__file__).parents[1] / "keras" / "src"
    for file, word in [
        ("saving/saving_api.py", "def save_model(model, filepath"),
        ("saving/saving_api.py", "def save_weights(\n    model, filepath"),
        ("legacy/saving/legacy_h5_format.py", "def save_model_to_hdf5(model, filepath"),
    ]:
        assert word in (keras / file).read_text().replace(
            "def save_weights(model", "def save_weights(\n    model"
        )


def test_ordinary_code_is_no_save() -> None:
    frame = types.FunctionType(compile("0", "a.py", "eval"), {})
    frame()
    assert find_save(stack(sys._getframe()), 0.0) is None
