"""A file of records followed while it is written: every record once, in order."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.record_writer import RecordWriter
from jupyter_tfguard.record.records import HEADER_BYTES
from jupyter_tfguard.record.tail import RecordTail

pytestmark = pytest.mark.quick

CAPACITY = 64
SIZE = 64


@pytest.fixture
def folder(tmp_path: Path) -> PrivateFolder:
    return PrivateFolder(tmp_path / "one")


@pytest.fixture
def writer(folder: PrivateFolder) -> RecordWriter:
    return make(folder)


def make(folder: PrivateFolder, capacity: int = CAPACITY, grow: int | None = None) -> RecordWriter:
    os.close(folder.create("ring"))
    return RecordWriter(
        folder.path / "ring",
        name="x",
        record_bytes=SIZE,
        capacity=capacity,
        types={},
        grow_bytes=grow,
    )


def followed(folder: PrivateFolder, follower: RecordTail) -> list[int]:
    return [record.sequence for record in follower.read(folder)]


@pytest.mark.parametrize("grow", [None, 1024])
@pytest.mark.parametrize("seed", range(2))
def test_every_record_comes_once_and_in_order(
    folder: PrivateFolder, seed: int, grow: int | None
) -> None:
    writer, chance, seen = make(folder, grow=grow), random.Random(seed), []
    follower = RecordTail("ring", 1 << 20)
    last = 0
    for _ in range(200):
        for _ in range(chance.randrange(CAPACITY)):
            writer.write(3, b"")
            last += 1
        seen += followed(folder, follower)
        assert seen == list(range(1, last + 1))
    assert last > 50 * CAPACITY


def test_after_a_lap_the_newest_are_read_and_then_it_goes_on(
    folder: PrivateFolder, writer: RecordWriter
) -> None:
    follower = RecordTail("ring", 1 << 20)
    writer.write(3, b"")
    assert followed(folder, follower) == [1]
    for _ in range(3 * CAPACITY + 10):
        writer.write(3, b"")
    last = 3 * CAPACITY + 11
    assert followed(folder, follower) == list(range(last - CAPACITY + 1, last + 1))
    writer.write(3, b"")
    assert followed(folder, follower) == [last + 1]


def test_a_number_that_is_never_used_holds_up_only_once(
    folder: PrivateFolder, writer: RecordWriter
) -> None:
    follower = RecordTail("ring", 1 << 20)
    writer.write(3, b"")
    writer.next_sequences(2)
    writer.write(3, b"")
    assert followed(folder, follower) == [1]
    assert followed(folder, follower) == [4]
    writer.write(3, b"")
    assert followed(folder, follower) == [5]


def aged(folder: PrivateFolder) -> None:
    """As if the last write was a minute ago."""
    moment = time.time() - 60
    os.utime(folder.path / "ring", (moment, moment))


def test_a_file_that_rests_is_not_even_opened(
    folder: PrivateFolder, writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = RecordTail("ring", 1 << 20)
    writer.write(3, b"")
    assert followed(folder, follower) == [1]
    writer.write(3, b"")
    aged(
        folder
    )  # the time did not go on with the second write, as within one step of a file system's clock
    assert followed(folder, follower) == [2]
    opened: list[str] = []
    real = folder.open
    monkeypatch.setattr(folder, "open", lambda *a: (opened.append(a[0]), real(*a))[1])
    assert followed(folder, follower) == []
    assert opened == []
    writer.write(3, b"")
    assert followed(folder, follower) == [3]


def test_a_record_that_a_read_came_too_early_for_is_not_lost(
    folder: PrivateFolder, writer: RecordWriter
) -> None:
    follower = RecordTail("ring", 1 << 20)
    for _ in range(3):
        writer.write(3, b"")
    descriptor = folder.open("ring", os.O_RDWR)
    start = HEADER_BYTES + SIZE
    second = os.pread(descriptor, SIZE, start)
    os.pwrite(descriptor, bytes(SIZE), start)  # as a reader sees it that was between two pages
    assert followed(folder, follower) == [1]
    os.pwrite(descriptor, second, start)
    assert followed(folder, follower) == [2, 3]
    os.close(descriptor)


def test_another_file_of_that_name_is_begun_again(
    folder: PrivateFolder, writer: RecordWriter
) -> None:
    follower = RecordTail("ring", 1 << 20)
    writer.write(3, b"")
    assert followed(folder, follower) == [1]
    (folder.path / "ring").rename(folder.path / "old")
    make(folder).write(3, b"")
    assert followed(folder, follower) == [1]


def test_a_file_that_is_too_long_is_not_followed(folder: PrivateFolder) -> None:
    make(folder, capacity=16384).write(3, b"")
    assert followed(folder, RecordTail("ring", 1 << 20)) == []
    assert followed(folder, RecordTail("ring", 2 << 20)) == [1]


@pytest.mark.parametrize("length", [0, 100, HEADER_BYTES, HEADER_BYTES + 70])
def test_a_file_cut_short_is_no_error(
    folder: PrivateFolder, writer: RecordWriter, length: int
) -> None:
    follower = RecordTail("ring", 1 << 20)
    for _ in range(3):
        writer.write(3, b"")
    os.truncate(folder.path / "ring", length)
    assert followed(folder, follower) == ([1] if length > HEADER_BYTES + SIZE else [])
    assert followed(folder, RecordTail("absent", 1 << 20)) == []
