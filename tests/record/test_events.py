"""The kinds of events: what is written of each, what is read back, and that FORMAT.md lists them all."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any

import pytest

import jupyter_tfguard
from jupyter_tfguard.batch_place import BatchPlace
from jupyter_tfguard.decode import decode
from jupyter_tfguard.kept_data import Holder, Kept
from jupyter_tfguard.record import events
from jupyter_tfguard.record.events import (
    KINDS,
    Array,
    CellEnd,
    CellStart,
    CheckpointWritten,
    Event,
    FitReady,
    FitStart,
    LoopStart,
    MemoryStopped,
    Notice,
    event_of,
    events_of,
)
from jupyter_tfguard.record.fit_progress import RecordedProgress
from jupyter_tfguard.training.progress import FitProgress

pytestmark = pytest.mark.quick

FORMAT = Path(jupyter_tfguard.__file__).parent / "record" / "FORMAT.md"
JUNK = [None, True, "x", "", -1, 1.5, 1e300, 2**70, float("nan"), [], [7, {"text": 7}], {}]
FIT = FitStart(
    fit_id=1,
    what="fit",
    optimizer="Adam",
    rss_bytes=5,
    kept_bytes=4,
    model_name="m",
    parameter_count=None,
    batch_size=8,
    batch_place=BatchPlace("pipeline", "batch"),
    batch_shape=(8, 3),
    batch_dtype="float32",
    epochs=2,
    steps=None,
    kept_data=(Kept("cache() keeps all.", 7),),
)


def written(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps({"kind": event.kind} | event.fields()))
    return found


def test_unknown_fields_are_written_as_null_and_those_with_a_default_are_left_out() -> None:
    assert written(FIT) == {
        "kind": "fit_start",
        "fit_id": 1,
        "what": "fit",
        "optimizer": "Adam",
        "rss_bytes": 5,
        "kept_bytes": 4,
        "model_name": "m",
        "parameter_count": None,
        "batch_size": 8,
        "batch_place": {"kind": "pipeline", "name": "batch"},
        "batch_shape": [8, 3],
        "batch_dtype": "float32",
        "epochs": 2,
        "steps": None,
        "kept_data": [{"text": "cache() keeps all.", "size_bytes": 7}],
    }
    loop = LoopStart(fit_id=2, what="loop", optimizer=None, rss_bytes=5, kept_bytes=None)
    assert written(loop) == {
        "kind": "fit_start",
        "fit_id": 2,
        "what": "loop",
        "optimizer": None,
        "rss_bytes": 5,
        "kept_bytes": None,
    }
    assert written(FitReady(fit_id=1, steps=3)) == {"kind": "fit_ready", "fit_id": 1, "steps": 3}
    saved = CheckpointWritten(path="/m", written=1.0, by="tfguard", weights_only=False)
    assert "what" not in written(saved)


def test_what_was_written_is_read_back() -> None:
    end = CellEnd(
        execution_count=3,
        seconds=1.5,
        ok=True,
        error=None,
        arrays=(Array("a", 7),),
        rss_start_bytes=1,
        peak_bytes=2,
        rss_bytes=3,
        gpu_start_bytes=None,
        gpu_peak_bytes=None,
        gpu_bytes=None,
    )
    stop = MemoryStopped(
        execution_count=3,
        lines=("one", "two"),
        what="stopped",
        seconds=0.1,
        available_bytes=1,
        limit_bytes=2,
        holders=(Holder("a", "a has 3 entries", added_bytes=-5),),
    )
    for event in (FIT, end, stop):
        read = event_of(written(event) | {"t": 9.0, "m": 2.0, "n": 1})
        assert read is not None
        assert (read.time, read.monotonic) == (9.0, 2.0)
        assert written(dataclasses.replace(read, time=None, monotonic=None)) == written(event)


def test_each_class_has_a_kind_and_is_listed() -> None:
    classes = [one for one in vars(events).values() if isinstance(one, type)]
    concrete = {one for one in classes if issubclass(one, Event) and hasattr(one, "kind")}
    assert concrete - {LoopStart} == set(KINDS.values())
    assert all(kind == one.kind for kind, one in KINDS.items())


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_field_is_the_event_is_read(kind: str) -> None:
    names = [one.name for one in dataclasses.fields(KINDS[kind])]
    for junk in JUNK:
        for name in names:
            assert event_of({"kind": kind, name: junk, "t": junk}) is not None
        event = event_of({"kind": kind} | dict.fromkeys(names, junk))
        assert event is not None
        assert isinstance(hash(event.time), int)
    cut = event_of({"kind": kind, "cut": True})
    assert cut is not None
    assert not any(getattr(cut, name) for name in names if name != "batch_place")


def test_an_unknown_kind_is_left_out() -> None:
    cell = {"kind": "cell_start", "execution_count": 1}
    found = events_of([{"kind": "later"}, 7, None, {"kind": ["x"]}, cell])
    assert [type(event) for event in found] == [CellStart]


def test_each_notice_has_a_mark() -> None:
    assert all(one.mark and one.mark_kind for one in Notice.__subclasses__())


def row(kind: type[Event]) -> str:
    names = [one.name for one in dataclasses.fields(kind) if one.name not in ("time", "monotonic")]
    optional = {
        one.name for one in dataclasses.fields(kind) if one.default is None or one.default == ()
    }
    listed = ", ".join(f"{name}?" if name in optional else name for name in names)
    what = (kind.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".")
    return f"| `{kind.kind}` | {what} | {listed} |"


def test_the_specification_lists_all_kinds_with_their_fields() -> None:
    assert typing.get_type_hints(FitStart)["fit_id"] == int | None
    text = FORMAT.read_text(encoding="utf-8")
    table = text.partition("## Events\n")[2].partition("\n## ")[0]
    listed = [line for line in table.splitlines() if line.startswith("| `")]
    assert listed == [row(kind) for kind in KINDS.values()]


def test_the_progress_of_a_fit_is_written_read_and_specified_with_the_same_names() -> None:
    names = [one.name for one in dataclasses.fields(RecordedProgress)]
    record = FitProgress(1, "fit").record(0.0)
    assert list(record) == names
    read = decode(RecordedProgress, json.loads(json.dumps(record)))
    assert read is not None
    assert (read.fit_id, read.what, read.active, read.epoch) == (1, "fit", True, None)
    text = " ".join(FORMAT.read_text(encoding="utf-8").split())
    assert f"JSON object with {', '.join(f'`{name}`' for name in names[:-1])} and `time`;" in text
