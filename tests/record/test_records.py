"""Files of records: what is written is read, what is torn or makes no sense is skipped or refused."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.errors import RecordTooNew, RecordUnreadable
from jupyter_tfguard.record.records import (
    BLOCK_BYTES,
    HEADER_BYTES,
    read_records,
    record_bytes_for,
)
from tests.record.records_rig import TYPES, numbers, opened, written

pytestmark = pytest.mark.quick


def with_header(content: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with both copies of its header changed, and right in itself."""
    length = struct.unpack_from("<8sII", content)[1]
    header = json.loads(content[16 : 16 + length])
    change(header)
    text = json.dumps(header).encode()
    block = struct.pack("<8sII", b"TFGRECS\n", len(text), zlib.crc32(text)) + text
    return 2 * block.ljust(BLOCK_BYTES, b"\0") + content[HEADER_BYTES:]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 20])
def test_the_newest_records_are_read_in_order(tmp_path: Path, count: int) -> None:
    found = read_records(written(tmp_path / "ring", count))
    assert [r.sequence for r in found.records] == list(range(max(1, count - 7), count + 1))
    assert [r.payload for r in found.records] == [b"%d" % r.sequence for r in found.records]
    assert found.header["name"] == "events"
    assert found.type_named(3) == TYPES[3]


def test_a_record_is_where_the_specification_says(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring")
    writer.write(3, b"abc", 13, monotonic=1.5, wall=2.5)
    start = HEADER_BYTES + (13 - 1) % 8 * 64
    row = (tmp_path / "ring").read_bytes()[start : start + 64]
    assert struct.unpack_from("<HHQdd", row, 4) == (3, 3, 13, 1.5, 2.5)
    assert row[32:] == b"abc".ljust(32, b"\0")
    assert struct.unpack_from("<I", row) == (zlib.crc32(row[4:35]),)
    writer.close()


def test_order_is_by_sequence_because_clocks_jump(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring")
    for number, wall in enumerate((50.0, 40.0, 1e9), start=1):
        writer.write(3, b"", number, wall=wall)
    writer.close()
    found = read_records((tmp_path / "ring").read_bytes()).records
    assert [r.time for r in found] == [50.0, 40.0, 1e9]


def test_one_damaged_record_is_skipped_and_the_others_stay(tmp_path: Path) -> None:
    content = written(tmp_path / "ring", 6)
    for bit in range(8 * 33):  # the head, and the one byte of payload
        damaged = bytearray(content)
        damaged[HEADER_BYTES + 2 * 64 + bit // 8] ^= 1 << bit % 8
        assert numbers(bytes(damaged)) == [1, 2, 4, 5, 6]


def test_no_flipped_bit_of_the_header_loses_a_record(tmp_path: Path) -> None:
    content = written(tmp_path / "ring", 6)
    for place in range(0, HEADER_BYTES, 5):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        assert numbers(bytes(damaged)) == [1, 2, 3, 4, 5, 6]


def test_every_truncation_shows_what_is_whole_or_is_refused(tmp_path: Path) -> None:
    content = written(tmp_path / "ring", 8)
    for length in range(0, len(content), 7):
        whole = max(0, (length - HEADER_BYTES) // 64)
        try:
            found = numbers(content[:length])
        except RecordUnreadable:
            assert length < BLOCK_BYTES
        else:
            assert found == list(range(1, whole + 1))


def test_a_record_that_is_there_twice_is_shown_once(tmp_path: Path) -> None:
    content = bytearray(written(tmp_path / "ring", 6))
    content[HEADER_BYTES : HEADER_BYTES + 64] = content[HEADER_BYTES + 64 : HEADER_BYTES + 128]
    assert numbers(bytes(content)) == [2, 3, 4, 5, 6]


def test_unknown_types_and_unknown_keys_are_no_obstacle(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring")
    writer.write(3, b"known")
    writer.write(4711, b"of a later version")
    writer.close()

    def later(header: dict[str, Any]) -> None:
        header["format"] = [2, 9]
        header["compression"] = {"with": "nothing"}
        header["types"]["4711"] = {"name": "thought", "number": "f16"}

    found = read_records(with_header((tmp_path / "ring").read_bytes(), later))
    assert [r.payload for r in found.of_type(3)] == [b"known"]
    assert found.header["compression"] == {"with": "nothing"}


def test_a_newer_major_is_refused_in_one_sentence(tmp_path: Path) -> None:
    content = with_header(written(tmp_path / "ring", 1), lambda h: h.update(format=[3, 0]))
    with pytest.raises(
        RecordTooNew, match=r"format 3, but this version of tfguard reads formats up to 2: upgrade"
    ):
        read_records(content)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "two"},
        {"format": []},
        {"format": [1, 0]},
        {"record_bytes": 100},
        {"record_bytes": 0},
        {"record_bytes": 8192},
        {"record_bytes": None},
        {"capacity": 0},
        {"capacity": 1 << 40},
        {"capacity": float("inf")},
        {"capacity": float("nan")},
        {"capacity": True},
        {"capacity": "8"},
        {"capacity": 8.0},
        {"record_bytes": "64"},
        {"format": "2"},
        {"format": ["2", 0]},
        {"format": [10**400, 0]},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    content = with_header(written(tmp_path / "ring", 1), lambda h: h.update(change))
    with pytest.raises(RecordUnreadable):
        read_records(content)


@pytest.mark.parametrize("types", [None, [], {"3": 7}, {"3": None}, 5])
def test_types_that_make_no_sense_leave_the_records_readable(tmp_path: Path, types: Any) -> None:
    content = with_header(written(tmp_path / "ring", 2), lambda h: h.update(types=types))
    found = read_records(content)
    assert len(found.records) == 2
    assert found.type_named(3) == {}


def test_records_are_powers_of_two_and_lie_within_a_page() -> None:
    for payload in range(4096 - 32 + 1):
        size = record_bytes_for(payload)
        assert size >= payload + 32
        assert 4096 % size == 0
