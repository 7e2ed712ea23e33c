"""A second reader of record files, written from the page of the format alone: it imports nothing of tfguard.

Where it and the product's reader disagree about a file, one of them is wrong, or the page leaves something open. It is
made to be compared with, not to be fast or to be used.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from dataclasses import dataclass
from typing import Any

MAJOR = 2


class Unreadable(Exception):
    """Neither copy of the header can be used."""


class TooNew(Unreadable):
    """The header names a later major format."""


@dataclass
class Found:
    """What a file holds.

    Attributes:
        header: The JSON of its header.
        records: (sequence, monotonic, time, type, payload), by sequence.
    """

    header: dict[str, Any]
    records: list[tuple[int, float, float, int, bytes]]


def read(content: bytes) -> Found:
    """The intact records.

    Raises:
        Unreadable, TooNew: There is no header to go by.
    """
    header = _first_intact_header(content)
    record_bytes, capacity = _sizes(header)
    newest: dict[int, tuple[int, float, float, int, bytes]] = {}
    for place in range(capacity):
        start = 8192 + place * record_bytes
        if start + record_bytes > len(content):
            break
        record = content[start : start + record_bytes]
        if is_intact(record):
            _, kind, length, sequence, monotonic, wall = struct.unpack_from("<IHHQdd", record)
            newest[sequence] = (sequence, monotonic, wall, kind, record[32 : 32 + length])
    return Found(header, [newest[sequence] for sequence in sorted(newest)])


def is_intact(record: bytes) -> bool:
    """True for the bytes of one record whose type, sequence, length and CRC are right."""
    crc, kind, length, sequence = struct.unpack_from("<IHHQ", record)
    if kind == 0 or sequence == 0 or 32 + length > len(record):
        return False
    return zlib.crc32(record[4 : 32 + length]) == crc


def _first_intact_header(content: bytes) -> dict[str, Any]:
    for start in (0, 4096):
        copy = content[start : start + 4096]
        if copy[:8] != b"TFGRECS\n" or len(copy) < 16:
            continue
        length, crc = struct.unpack_from("<II", copy, 8)
        if length > 4096 - 16 or zlib.crc32(copy[16 : 16 + length]) != crc:
            continue
        header = _json_object(copy[16 : 16 + length])
        if header is not None:
            return header
    raise Unreadable("no intact header")


def _sizes(header: dict[str, Any]) -> tuple[int, int]:
    version = header.get("format")
    if not isinstance(version, list) or not version or not _is_integer(version[0]):
        raise Unreadable("no format")
    if version[0] > MAJOR:
        raise TooNew(str(version[0]))
    if version[0] < MAJOR:
        raise Unreadable("never released")
    record_bytes, capacity = header.get("record_bytes"), header.get("capacity")
    if not _is_integer(record_bytes) or record_bytes not in (64, 128, 256, 512, 1024, 2048, 4096):
        raise Unreadable("record_bytes")
    if not _is_integer(capacity) or not 1 <= capacity <= 16384:
        raise Unreadable("capacity")
    return record_bytes, capacity


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _json_object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# --- what the payloads mean


def samples(found: Found) -> list[tuple[int, float, float, dict[str, float]]]:
    """(sequence, monotonic, time, value per column) of type 1; NaN is unknown and left out."""
    names = _columns(found, 1, "f64")
    rows = []
    for sequence, monotonic, wall, kind, payload in found.records:
        if names and kind == 1 and len(payload) >= 8 * len(names) and _is_moment(monotonic, wall):
            numbers = struct.unpack_from(f"<{len(names)}d", payload)
            known = {n: v for n, v in zip(names, numbers, strict=True) if not math.isnan(v)}
            rows.append((sequence, monotonic, wall, known))
    return rows


def summaries(found: Found) -> list[tuple[Any, ...]]:
    """(sequence, monotonic, time, minimum, maximum, last) of type 2; only finite values."""
    names = _columns(found, 2, "f32")
    rows = []
    for sequence, monotonic, wall, kind, payload in found.records:
        if names and kind == 2 and len(payload) >= 12 * len(names) and _is_moment(monotonic, wall):
            numbers = struct.unpack_from(f"<{3 * len(names)}f", payload)
            parts = []
            for part in range(3):
                some = numbers[part * len(names) : (part + 1) * len(names)]
                parts.append({n: v for n, v in zip(names, some, strict=True) if math.isfinite(v)})
            rows.append((sequence, monotonic, wall, *parts))
    return rows


def events(found: Found) -> list[dict[str, Any]]:
    """Each record of type 3 with the unbroken row of type 4 before it, at most 4096 bytes of JSON together."""
    by_sequence = {record[0]: record for record in found.records}
    told = []
    for sequence, monotonic, wall, kind, payload in found.records:
        if kind != 3:
            continue
        text, before = payload, sequence - 1
        while before in by_sequence and by_sequence[before][3] == 4:
            text, before = by_sequence[before][4] + text, before - 1
        event = _json_object(text) if len(text) <= 4096 else None
        if event and isinstance(event.get("kind"), str) and _is_moment(monotonic, wall):
            told.append(event | {"n": sequence, "t": wall, "m": monotonic})
    return told


def progress(found: Found) -> dict[str, Any] | None:
    """The newest record of type 5 that is a JSON object."""
    values = (_json_object(record[4]) for record in reversed(found.records) if record[3] == 5)
    return next((value for value in values if value is not None), None)


def gpu_memory(found: Found) -> list[dict[str, Any]] | None:
    """The newest record of type 6 that holds a list of devices: those with a name, the first eight, each once."""
    for record in reversed(found.records):
        value = _json_object(record[4]) if record[3] == 6 else None
        told = (value or {}).get("devices")
        if not isinstance(told, list):
            continue
        devices: dict[str, dict[str, Any]] = {}
        for device in told[:8]:
            name = device.get("device") if isinstance(device, dict) else None
            if isinstance(name, str) and re.fullmatch("GPU:[0-9]{1,4}", name):
                numbers = {key: device.get(key) for key in ("in_use_bytes", "peak_bytes")}
                known = {k: n if _is_size(n) else None for k, n in numbers.items()}
                devices[name] = {"device": name} | known
        return list(devices.values())
    return None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _columns(found: Found, kind: int, number: str) -> list[str]:
    types = found.header.get("types")
    told = types.get(str(kind)) if isinstance(types, dict) else None
    if not isinstance(told, dict) or told.get("number") != number:
        return []
    columns = told.get("columns")
    if not isinstance(columns, list):
        return []
    names = [column.get("name") for column in columns if isinstance(column, dict)]
    sound = len(names) == len(columns) and all(isinstance(name, str) for name in names)
    return names if sound else []


def _is_moment(monotonic: float, wall: float) -> bool:
    return 0 <= wall < 1e11 and abs(monotonic) < 1e11
