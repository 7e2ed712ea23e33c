"""The ring of samples: what is written is read, what is torn is skipped."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

import pytest

from jupyter_tfguard.errors import RecordTooNew, RecordUnreadable
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record.ring import HEADER_BYTES, RingWriter, RowLayout, read_ring

pytestmark = pytest.mark.quick

METRICS = (
    Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),
    Metric("host.available_bytes", "Available", Unit.BYTES, "meminfo"),
)


def write(path: Path, count: int, capacity: int = 8) -> bytes:
    writer = RingWriter(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), METRICS, capacity)
    for sequence in range(1, count + 1):
        values = {"process.rss_bytes": sequence * 10.0}
        writer.write(Sample(sequence, sequence / 10, 1e9 + sequence, values))
    writer.close()
    return path.read_bytes()


def test_the_newest_samples_are_read_in_order(tmp_path: Path) -> None:
    samples = read_ring(write(tmp_path / "ring", 20))
    assert [s.sequence for s in samples] == list(range(13, 21))
    assert samples[-1].get("process.rss_bytes") == 200.0
    assert samples[-1].time == 1e9 + 20


def test_an_unread_metric_is_unknown_not_zero(tmp_path: Path) -> None:
    samples = read_ring(write(tmp_path / "ring", 1))
    assert samples[0].get("host.available_bytes") is None


def test_a_torn_row_is_skipped_and_the_others_stay(tmp_path: Path) -> None:
    content = bytearray(write(tmp_path / "ring", 5))
    size = RowLayout(tuple(m.name for m in METRICS)).row_bytes
    content[HEADER_BYTES + 2 * size + 9] ^= 1
    assert [s.sequence for s in read_ring(bytes(content))] == [1, 2, 4, 5]


def test_every_truncation_of_the_file_is_read_or_refused(tmp_path: Path) -> None:
    content = write(tmp_path / "ring", 8)
    whole = {s.sequence: s for s in read_ring(content)}
    for length in range(0, len(content), 7):
        try:
            samples = read_ring(content[:length])
        except RecordUnreadable:
            assert length < HEADER_BYTES
            continue
        assert all(whole[s.sequence] == s for s in samples)


def test_rows_are_powers_of_two_and_lie_within_a_page() -> None:
    for count in range(1, 60):
        size = RowLayout(tuple(str(n) for n in range(count))).row_bytes
        assert size & (size - 1) == 0
        assert 4096 % size == 0


def test_a_newer_major_is_refused_in_one_sentence(tmp_path: Path) -> None:
    content = write(tmp_path / "ring", 1)
    length = struct.unpack_from("<8sII", content)[1]
    header = json.loads(content[16 : 16 + length])
    header["format"] = [2, 0]
    text = json.dumps(header).encode()
    head = struct.pack("<8sII", b"TFGRING1", len(text), zlib.crc32(text)) + text
    with pytest.raises(RecordTooNew, match=r"format 2, this tfguard reads up to format 1"):
        read_ring(head.ljust(HEADER_BYTES, b"\0"))


def test_a_full_disk_is_met_when_the_ring_is_made_not_at_a_sample() -> None:
    descriptor = os.open("/dev/full", os.O_RDWR)
    with pytest.raises(OSError, match=r"\[Errno"):
        RingWriter(descriptor, METRICS, 8)
    os.close(descriptor)
