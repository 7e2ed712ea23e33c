"""Events and the newest progress: bounded on disk, readable after a kill at any byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.journal import FILE_LIMIT_BYTES, NAMES, JournalWriter, read_journal
from jupyter_tfguard.record.slot import SLOT_BYTES, SlotWriter, read_slot

pytestmark = pytest.mark.quick


@pytest.fixture
def folder(tmp_path: Path) -> PrivateFolder:
    return PrivateFolder(tmp_path / "one")


def journal(folder: PrivateFolder) -> JournalWriter:
    return JournalWriter(lambda name: folder.create(name, append=True))


def contents(folder: PrivateFolder) -> list[bytes]:
    return [folder.read(name, 1 << 22) or b"" for name in NAMES]


def test_events_come_back_in_order_with_their_fields(folder: PrivateFolder) -> None:
    writer = journal(folder)
    for count in range(3):
        writer.write("cell_start", execution_count=count, head="x = 1\n")
    events = read_journal(contents(folder))
    assert [e["execution_count"] for e in events] == [0, 1, 2]
    assert events[0]["head"] == "x = 1\n"


def test_the_disk_used_is_bounded_and_the_newest_stay(folder: PrivateFolder) -> None:
    writer = journal(folder)
    for count in range(20_000):
        writer.write("cell_start", execution_count=count, head="x" * 60)
    files = contents(folder)
    assert all(len(file) <= FILE_LIMIT_BYTES for file in files)
    events = read_journal(files)
    assert events[-1]["execution_count"] == 19_999
    assert len(events) > 1000


def test_a_line_cut_by_a_kill_loses_only_itself(folder: PrivateFolder) -> None:
    writer = journal(folder)
    for count in range(4):
        writer.write("cell_start", execution_count=count)
    whole = contents(folder)[0]
    for length in range(len(whole)):
        events = read_journal([whole[:length]])
        assert [e["execution_count"] for e in events] == list(range(len(events)))
        assert len(events) >= whole[:length].count(b"\n")


def test_a_huge_field_is_cut_not_refused(folder: PrivateFolder) -> None:
    writer = journal(folder)
    writer.write("cell_start", execution_count=1, head="y" * 100_000)
    writer.write("cell_start", execution_count=2, many=list(range(5000)))
    first, second = read_journal(contents(folder))
    assert first["head"] == "y" * 200
    assert second["cut"] is True


def test_lone_surrogates_and_strange_values_are_written(folder: PrivateFolder) -> None:
    journal(folder).write("cell_start", head="\ud800", path=Path("a"))
    assert read_journal(contents(folder))[0]["path"] == "a"


def test_the_slot_gives_the_newest_whole_value(folder: PrivateFolder) -> None:
    descriptor = folder.create("slot")
    writer = SlotWriter(descriptor)
    assert read_slot(folder.read("slot", 1 << 20) or b"") is None
    for step in range(1, 6):
        writer.write({"step": step})
    content = bytearray(folder.read("slot", 1 << 20) or b"")
    assert read_slot(bytes(content)) == {"step": 5}
    content[SLOT_BYTES + 20] ^= 255  # step 5 lies in the second record
    assert read_slot(bytes(content)) == {"step": 4}


def test_a_value_too_long_for_the_slot_is_refused_and_the_old_one_stays(
    folder: PrivateFolder,
) -> None:
    writer = SlotWriter(folder.create("slot"))
    writer.write({"step": 1})
    with pytest.raises(ValueError, match="do not fit"):
        writer.write({"step": "x" * SLOT_BYTES})
    assert read_slot(folder.read("slot", 1 << 20) or b"") == {"step": 1}
    writer.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(writer._descriptor)
