"""Events and the newest progress: in order, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.record import journal
from jupyter_tfguard.record import newest as progress
from jupyter_tfguard.record.journal import EVENT, EVENT_LIMIT_BYTES, EVENT_PART, read_events
from jupyter_tfguard.record.record_writer import RecordWriter
from jupyter_tfguard.record.records import Record, read_records

pytestmark = pytest.mark.quick


class Journal:
    """A file of events."""

    def __init__(self, path: Path, capacity: int = 64) -> None:
        self.path = path
        path.touch()
        self.writer = RecordWriter(
            path,
            name="events",
            record_bytes=1024,
            capacity=capacity,
            types=journal.TYPES,
        )

    def write(self, kind: str, **fields: Any) -> None:
        journal.write_event(self.writer, kind, fields)

    @property
    def records(self) -> list[Record]:
        return read_records(self.path.read_bytes()).records

    @property
    def events(self) -> list[journal.Event]:
        return read_events(self.records)


@pytest.fixture
def events(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "events.ring")


def test_events_come_back_in_order_with_their_fields(events: Journal) -> None:
    for count in range(3):
        events.write("cell_start", execution_count=count, head="x = 1\n")
    found = events.events
    assert [e["execution_count"] for e in found] == [0, 1, 2]
    assert [e["n"] for e in found] == [1, 2, 3]
    assert found[0]["head"] == "x = 1\n"
    assert found[0]["t"] > 1e9
    assert found[0]["m"] <= found[1]["m"]


def test_what_an_event_says_of_its_own_time_does_not_count(events: Journal) -> None:
    events.write("cell_start", t=-1, m="x", n=None)
    assert events.events[0]["n"] == 1
    assert events.events[0]["t"] > 1e9


@pytest.mark.parametrize("length", [900, 992, 1000, 1984, 3000, 4000])
def test_a_long_event_is_in_several_records(events: Journal, length: int) -> None:
    events.write("first")
    events.write("cell_start", head="é" * (length // 2))
    events.write("last")
    assert [e["kind"] for e in events.events] == ["first", "cell_start", "last"]
    assert events.events[1]["head"] == "é" * (length // 2)
    types = [record.type for record in events.records]
    assert types == [EVENT, *[EVENT_PART] * (len(types) - 3), EVENT, EVENT]
    assert (len(types) > 3) == (length + len('{"kind": "cell_start", "head": ""}') > 992)


def test_an_event_of_which_a_part_is_missing_is_left_out(events: Journal) -> None:
    events.write("first")
    events.write("cell_start", head="y" * 2500)
    events.write("last")
    records = events.records
    assert [r.type for r in records[1:-1]] == [EVENT_PART, EVENT_PART, EVENT]
    for missing in range(1, len(records) - 1):
        rest = [r for i, r in enumerate(records) if i != missing]
        assert [e["kind"] for e in read_events(rest)] == ["first", "last"]


def test_an_event_whose_beginning_was_overwritten_is_left_out(tmp_path: Path) -> None:
    events = Journal(tmp_path / "events.ring", capacity=4)
    events.write("cell_start", head="y" * 2500)
    events.write("later")
    assert [e["kind"] for e in events.events] == ["cell_start", "later"]
    events.write("last")  # over the first part
    assert [e["kind"] for e in events.events] == ["later", "last"]


def test_a_huge_field_is_cut_not_refused(events: Journal) -> None:
    events.write("cell_start", execution_count=1, head="y" * 100_000)
    events.write("cell_start", execution_count=2, many=list(range(5000)))
    events.write("memory_stop", lines=["short", "z" * 5000])
    first, second, third = events.events
    assert third["lines"] == ["short", "z" * 200]
    assert first["head"] == "y" * 200
    assert first["execution_count"] == 1
    assert second["cut"] is True
    assert sum(len(r.payload) for r in events.records) <= 3 * EVENT_LIMIT_BYTES


def test_lone_surrogates_and_strange_values_are_written(events: Journal) -> None:
    events.write("cell_start", head="\ud800", path=Path("a"), loss=float("nan"))
    (found,) = events.events
    assert found["path"] == "a"
    assert found["head"] == "\ud800"
    assert found["loss"] != found["loss"]


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"7", b'{"kind": 7}', b"{}", b"\xff" * 100, b"[" * 900, b'{"kind": "a"} x'],
)
def test_an_event_that_is_none_is_left_out(events: Journal, payload: bytes) -> None:
    events.writer.write(EVENT, payload)
    events.write("real")
    assert [e["kind"] for e in events.events] == ["real"]


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_time_that_can_be_none_is_left_out(events: Journal, moment: float) -> None:
    events.writer.write(EVENT, b'{"kind": "forged"}', wall=moment)
    events.write("real")
    assert [e["kind"] for e in events.events] == ["real"]


def test_parts_without_end_are_given_up(events: Journal) -> None:
    for _ in range(30):
        events.writer.write(EVENT_PART, b"x" * 992)
    events.writer.write(EVENT, b'"}')
    events.write("real")
    assert [e["kind"] for e in events.events] == ["real"]


@pytest.fixture
def slots(tmp_path: Path) -> RecordWriter:
    (tmp_path / "progress.ring").touch()
    return RecordWriter(
        tmp_path / "progress.ring",
        name="progress",
        record_bytes=progress.RECORD_BYTES,
        capacity=progress.CAPACITY,
        types=progress.PROGRESS_TYPES,
    )


def newest(path: Path, damaged: int | None = None) -> dict[str, Any] | None:
    content = bytearray(path.read_bytes())
    if damaged is not None:
        content[8192 + damaged * 1024 + 40] ^= 255
    return progress.newest_progress(read_records(bytes(content)).records)


def test_the_newest_whole_progress_is_given(slots: RecordWriter, tmp_path: Path) -> None:
    path = tmp_path / "progress.ring"
    assert newest(path) is None
    for step in range(1, 6):
        progress.write_progress(slots, {"step": step})
    assert newest(path) == {"step": 5}
    assert newest(path, damaged=0) == {"step": 4}  # the fifth lies in the first record
    assert newest(path, damaged=1) == {"step": 5}


def test_of_a_progress_too_long_the_last_logs_are_left_out(
    slots: RecordWriter, tmp_path: Path
) -> None:
    logs = {"🙂" * 40 + str(n): 0.123456789012345 for n in range(12)}
    value = {"model_name": "ж" * 40, "optimizer": "🙂" * 40, "logs": logs, "step": 7}
    progress.write_progress(slots, value)
    found = newest(tmp_path / "progress.ring")
    assert found is not None
    kept = found.pop("logs")
    assert found == {k: v for k, v in value.items() if k != "logs"}
    assert 2 <= len(kept) < 12
    assert list(kept.items()) == list(logs.items())[: len(kept)]
    assert len(value["logs"]) == 12  # the caller's own is left as it was


def test_a_progress_too_long_is_refused_and_the_old_one_stays(
    slots: RecordWriter, tmp_path: Path
) -> None:
    longest = {"step": "x" * (progress.TEXT_LIMIT_BYTES - len('{"step": ""}'))}
    progress.write_progress(slots, longest)
    with pytest.raises(ValueError, match="do not fit"):
        progress.write_progress(slots, {"step": longest["step"] + "x"})
    assert newest(tmp_path / "progress.ring") == longest
