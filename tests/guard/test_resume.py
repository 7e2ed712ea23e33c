"""Files that are damaged, forged or of another model: none of them changes a variable."""

from __future__ import annotations

import json
import sys
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from jupyter_tfguard.guard.checkpoint import HEADER, Position, save
from jupyter_tfguard.guard.resume import (
    CheckpointHalfRestored,
    CheckpointUnusable,
    restore_training,
)

pytestmark = pytest.mark.quick


class Variable:
    """A variable with its value in NumPy."""

    def __init__(self, value: Any) -> None:
        self.value = numpy.asarray(value)
        self.shape, self.dtype = self.value.shape, self.value.dtype

    def assign(self, value: Any) -> None:
        self.value = numpy.array(value, copy=True).reshape(self.shape)


class Optimizer:
    """One with two slots that exists already."""

    built = True

    def __init__(self) -> None:
        self.variables = [Variable(numpy.int64(0)), Variable(numpy.zeros((3, 2), "float32"))]


def made(start: float = 0.0) -> Any:
    values = (numpy.full((3, 2), start, "float32"), numpy.full(4, start, "float64"))
    return types.SimpleNamespace(
        built=True,
        name="m",
        variables=[*map(Variable, values), Variable(numpy.array([7, int(start)], "uint32"))],
        trainable_variables=[],
        optimizer=Optimizer(),
    )


def content(model: Any) -> list[bytes]:
    return [one.value.tobytes() for one in (*model.variables, *model.optimizer.variables)]


Parts = dict[str, bytes]


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array: Any) -> bytes:
    import io

    file = io.BytesIO()
    numpy.lib.format.write_array(file, numpy.asarray(array))
    return file.getvalue()


def header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Parts], None]:
    def forge(parts: Parts) -> None:
        found = json.loads(parts[HEADER])
        change(found)
        parts[HEADER] = json.dumps(found).encode()

    return forge


def entry(name: str, content: bytes) -> Callable[[Parts], None]:
    return lambda parts: parts.__setitem__(f"{name}.npy", content)


LAST = "optimizer/0001"
HUGE = npy(numpy.zeros((3, 2), "float32")).replace(b"(3, 2), }", b"(3, 99999999999), }").ljust(152)
FORGED: dict[str, Callable[[Parts], Any]] = {
    "another shape in the last array": entry(LAST, npy(numpy.ones((2, 3), "float32"))),
    "more rows in the last array": entry(LAST, npy(numpy.ones((9, 2), "float32"))),
    "another dtype in the last array": entry(LAST, npy(numpy.ones((3, 2), "float64"))),
    "integers of the same size": entry(LAST, npy(numpy.ones((3, 2), "uint32"))),
    "another byte order": entry(LAST, npy(numpy.ones((3, 2), ">f4"))),
    "text in the last array": entry(LAST, npy(numpy.full((3, 2), "ab"))),
    "an array in Fortran order": entry(
        LAST, npy(numpy.asfortranarray(numpy.ones((3, 2), "float32")))
    ),
    "a shape of terabytes": entry(LAST, HUGE),
    "an array cut off": lambda parts: parts.__setitem__(f"{LAST}.npy", parts[f"{LAST}.npy"][:-4]),
    "an array that is none": entry(LAST, b"no array"),
    "an array whose header does not end": entry(
        LAST, npy(numpy.ones((3, 2), "float32")).replace(b"}", b" ")
    ),
    "an empty array": entry(LAST, b""),
    "an array missing": lambda parts: parts.pop(f"{LAST}.npy"),
    "no header": lambda parts: parts.pop(HEADER),
    "a header that is no JSON": lambda parts: parts.__setitem__(HEADER, b"{"),
    "a header nested deeply": lambda parts: parts.__setitem__(
        HEADER, b'{"a":' * 99_999 + b"1" + b"}" * 99_999
    ),
    "a list for a header": lambda parts: parts.__setitem__(HEADER, b"[]"),
    "another format": header(lambda found: found.update(format=99)),
    "no position": header(lambda found: found.pop("position")),
    "a position that is text": header(lambda found: found.update(position="epoch 3")),
    "an epoch that is text": header(lambda found: found["position"].update(epoch="3")),
    "a negative epoch": header(lambda found: found["position"].update(epoch=-3)),
    "epoch 0": header(lambda found: found["position"].update(epoch=0)),
    "a step that is a fraction": header(lambda found: found["position"].update(step=1.5)),
    "no step": header(lambda found: found["position"].update(step=None)),
    "an unknown part of the position": header(lambda found: found["position"].update(era=1)),
    "no optimizer": header(lambda found: found.pop("optimizer")),
    "an optimizer that is a number": header(lambda found: found.update(optimizer=4)),
    "another optimizer": header(lambda found: found.update(optimizer="Adam")),
    "another shape in the header": header(
        lambda found: found["variables"][LAST].update(shape=[2, 3])
    ),
    "a shape that is text": header(lambda found: found["variables"][LAST].update(shape="3, 2")),
    "an unknown dtype": header(lambda found: found["variables"][LAST].update(dtype="float31")),
    "a dtype that is a number": header(lambda found: found["variables"][LAST].update(dtype=4)),
    "one variable less": header(lambda found: found["variables"].pop(LAST)),
    "variables by other names": header(
        lambda found: found["variables"].update(
            {"weights/0009": found["variables"].pop("weights/0002")}
        )
    ),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_forged_file_changes_nothing(
    tmp_path: Path, forge: Callable[[Parts], Any], compression: int
) -> None:
    saved = save(made(5.0), Position(epoch=3, step=1, epochs=9), tmp_path).path
    parts = parts_of(saved)
    forge(parts)
    path = tmp_path / "forged.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, one in parts.items():
            archive.writestr(name, one)
    model = made()
    before = content(model)
    with pytest.raises(CheckpointUnusable):
        restore_training(model, path)
    assert content(model) == before


@pytest.mark.parametrize("place", [0.02, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("how", ["cut", "changed", "zeroed"])
def test_a_damaged_file_changes_nothing(tmp_path: Path, place: float, how: str) -> None:
    data = bytearray(save(made(5.0), Position(epoch=3), tmp_path).path.read_bytes())
    where = int(place * len(data))
    if how == "cut":
        del data[where:]
    elif how == "changed":
        data[where] ^= 255
    else:
        data[where : where + 64] = bytes(len(data[where : where + 64]))
    path = tmp_path / "damaged.npz"
    path.write_bytes(data)
    model, intact = made(), made(5.0)
    before = content(model)
    try:
        restore_training(model, path)
    except CheckpointUnusable:
        assert content(model) == before
    else:  # a byte that no reader of the archive uses
        assert content(model) == content(intact)


def test_files_of_other_programs_are_not_checkpoints(tmp_path: Path) -> None:
    numpy.savez(tmp_path / "a.npz", x=numpy.ones(3))
    numpy.save(tmp_path / "b.npy", numpy.ones(3))
    (tmp_path / "c.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(2000))
    (tmp_path / "d.txt").write_text("")
    for path in tmp_path.iterdir():
        with pytest.raises(CheckpointUnusable, match="not a checkpoint of tfguard"):
            restore_training(made(), path)
    with pytest.raises(FileNotFoundError):
        restore_training(made(), tmp_path / "none.npz")


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    saved, new = made(5.0), made()
    path = save(saved, Position(epoch=3, step=1, steps=4), tmp_path).path
    assert restore_training(new, path) == 2
    assert content(new) == content(saved)


@pytest.mark.parametrize("failing", [0, 2])
def test_memory_that_runs_out_is_said_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    path = save(made(5.0), Position(epoch=3), tmp_path).path
    model, calls = made(), []
    read = numpy.lib.format.read_array

    def short(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) > failing:
            raise MemoryError
        return read(*given, **named)

    monkeypatch.setattr(sys.modules["numpy"].lib.format, "read_array", short)
    before = content(model)
    kind = CheckpointHalfRestored if failing else CheckpointUnusable
    with pytest.raises(kind, match="Memory ran out") as raised:
        restore_training(model, path)
    assert (content(model) == before) is not bool(failing)
    assert ("after 2 of 5 variables" in str(raised.value)) is bool(failing)
