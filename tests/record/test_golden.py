"""Recordings of every format that was released stay readable, on every system, and mean what they meant."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.records import BLOCK_BYTES, FORMAT, HEADER_BYTES, read_records
from tests.record.golden import write as golden

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(path.name for path in GOLDEN.iterdir() if (path / "expected.json").exists())
NEWEST = GOLDEN / ".".join(map(str, FORMAT))


def expected(version: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((version / "expected.json").read_text(encoding="utf-8"))
    return found


def found_in(version: Path, tmp_path: Path, change: Callable[[Path], None]) -> dict[str, Any]:
    copy = tmp_path / "recording"
    shutil.copytree(version / "recording", copy)  # reading makes a folder private
    change(copy)
    found: dict[str, Any] = json.loads(json.dumps(golden.as_json(read_recording(copy))))
    return found


def test_the_format_that_is_written_has_its_golden_recording() -> None:
    assert NEWEST.name in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_recording_is_read_as_ever(version: str, tmp_path: Path) -> None:
    found = found_in(GOLDEN / version, tmp_path, lambda copy: None)
    assert found == expected(GOLDEN / version)


def test_the_golden_recording_shows_what_the_format_can_do() -> None:
    wanted = expected(NEWEST)
    assert len(wanted["samples"]) == 16  # the ring has gone round
    assert wanted["samples"][0][0] == 15
    assert len(wanted["seconds"]) == 12
    assert len(wanted["minutes"]) == 3
    assert len(wanted["events"]) >= 3
    assert max(len(event.get("head", "")) for event in wanted["events"]) > 1024  # in parts
    moments = [event["m"] for event in wanted["events"]]
    assert moments == sorted(moments)
    assert wanted["progress"]["step"] == 3


def test_the_writer_still_writes_these_very_bytes(tmp_path: Path) -> None:
    written = golden.write(tmp_path / "recordings")
    rings = sorted(path.name for path in (NEWEST / "recording").glob("*.ring"))
    assert len(rings) == 5
    for name in rings:
        assert (written / name).read_bytes() == (NEWEST / "recording" / name).read_bytes(), name


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change both copies of a file's header, as a later version would have written them."""
    content = path.read_bytes()
    header = read_records(content).header
    change(header)
    text = json.dumps(header).encode()
    block = struct.pack("<8sII", b"TFGRECS\n", len(text), zlib.crc32(text)) + text
    path.write_bytes(2 * block.ljust(BLOCK_BYTES, b"\0") + content[HEADER_BYTES:])


def test_a_newer_minor_with_new_keys_and_new_types_is_read(tmp_path: Path) -> None:
    def newer(copy: Path) -> None:
        def change(header: dict[str, Any]) -> None:
            header |= {"format": [2, 8], "encrypted": False}
            header["types"]["99"] = {"name": "thought", "number": "i3"}
            for told in header["types"].values():
                told["colour"] = "blue"

        for ring in copy.glob("*.ring"):
            rewritten(ring, change)
        header = json.loads((copy / "header.json").read_text())
        (copy / "header.json").write_text(json.dumps(header | {"format": [2, 8], "new": 1}))

    found = found_in(NEWEST, tmp_path, newer)
    wanted = expected(NEWEST)
    wanted["header"]["format"] = [2, 8]
    assert found == wanted


def test_records_of_an_unknown_type_are_skipped(tmp_path: Path) -> None:
    def unknown(copy: Path) -> None:
        for ring in copy.glob("*.ring"):
            content = bytearray(ring.read_bytes())
            size = read_records(bytes(content)).header["record_bytes"]
            for start in range(HEADER_BYTES, len(content), size):
                length = struct.unpack_from("<H", content, start + 6)[0]
                struct.pack_into("<H", content, start + 4, 999)
                crc = zlib.crc32(content[start + 4 : start + 32 + length])
                struct.pack_into("<I", content, start, crc)
            ring.write_bytes(content)

    found = found_in(NEWEST, tmp_path, unknown)
    for name in ("samples", "seconds", "minutes", "events", "problems"):
        assert found[name] == []
    assert found["progress"] is None


def test_a_file_of_a_newer_major_is_refused_in_one_sentence_and_the_others_read(
    tmp_path: Path,
) -> None:
    def newer(copy: Path) -> None:
        rewritten(copy / "samples.ring", lambda header: header.update(format=[3, 0]))

    found = found_in(NEWEST, tmp_path, newer)
    assert found["problems"] == [
        "The file samples.ring has format 3, but this version of tfguard reads formats up to 2: "
        "upgrade jupyter-tfguard to read it."
    ]
    assert found["samples"] == []
    assert found["events"] == expected(NEWEST)["events"]
