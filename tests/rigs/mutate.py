"""Damaged and forged inputs for the readers: valid files taken apart, changed, and put together with right CRCs.

A mutator that only flips bits never gets past a CRC; this one knows the layout (FORMAT.md beside the reader), so that
what the reader trusts after the CRC is tried as well. All chance comes from the generator that is handed in.
"""

from __future__ import annotations

import copy
import json
import math
import random
import struct
import zlib
from dataclasses import dataclass
from typing import Any

BLOCK = 4096
RECORDS_AT = 2 * BLOCK
_BLOCK_HEAD = struct.Struct("<8sII")
_RECORD_HEAD = struct.Struct("<HHQdd")
_MAGIC = b"TFGRECS\n"
_RECORD_HEAD_BYTES = 32
SIZES = (64, 128, 256, 512, 1024, 2048, 4096)

# Values that readers get wrong: borders of integers, what JSON allows and JavaScript does not, text that is none.
ATOMS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 63, 64, 65, 127, 4095, 4096, 4097, 1 << 16, 1 << 31),
    *((1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63), 10**400, 0.0, -0.0, 1.5, 1e308),
    *(5e-324, math.nan, math.inf, -math.inf, "", "0", "1", "2", "NaN", "\0", "\u202e", "\ud800"),
    *("a" * 700, "é" * 300, [], {}, [[]], [{}], {"": {}}, [2, 0], [3, 0], [2], ["2", 0], [[[[1]]]]),
    *(
        {"name": "sample"},
        {"name": 1, "number": "f64", "columns": []},
        [{"name": "a"}],
        "f64",
        "f32",
    ),
)
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 1 << 31, 1 << 63, -(1 << 63), 10**400, 0.0, -0.0, 1.5, 5e-324, 1e308, 1e19),
    *(math.nan, math.inf, -math.inf, None, True, "1", []),
)
TEXTS = (
    *(b"", b"{", b"}", b"null", b"[]", b"1", b'"', b"{}", b"\xff\xfe", b"\xef\xbb\xbf{}", b"\0"),
    *(b"[" * 900, b'{"a":' * 150, b"1" * 900, b"-", b"1e999", b'{"a":1,"a":2}', b'"\\ud800"'),
    *(
        b'{"kind":"x"}',
        b'{"n":1,"t":1,"m":1,"kind":"x"}',
        b'{"kind":"x","n":1e999,"t":NaN}',
        b"{}{}",
    ),
)
INTEGERS = (0, 1, 2, 3, 4, 5, 6, 7, 31, 32, 33, 64, 255, 256, 1000, 4064, 65535)
SEQUENCES = (
    0,
    1,
    2,
    3,
    8,
    9,
    1 << 31,
    1 << 32,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 2,
    (1 << 64) - 1,
)
TIMES = (0.0, -1.0, 1e-300, 1.8e9, 1e18, 1e308, math.nan, math.inf, -math.inf)


@dataclass
class Parts:
    """A record file taken apart: the JSON of its header, and its slots as [type, length, sequence, monotonic, time, payload]."""

    header: dict[str, Any]
    record_bytes: int
    slots: list[list[Any]]

    @classmethod
    def of(cls, content: bytes) -> Parts:
        """Take a valid file apart; raises when it is none."""
        _, length, _ = _BLOCK_HEAD.unpack_from(content)
        header = json.loads(content[_BLOCK_HEAD.size : _BLOCK_HEAD.size + length])
        size = header["record_bytes"]
        if size not in SIZES:
            raise ValueError("no size of a record")
        slots = []
        for start in range(RECORDS_AT, len(content) - size + 1, size):
            head = list(_RECORD_HEAD.unpack_from(content, start + 4))
            body = start + _RECORD_HEAD_BYTES
            slots.append([*head, content[body : body + head[1]]])
        return cls(header, size, slots)


def block(text: bytes) -> bytes:
    """A header block with a right CRC, even when the text is too long for it."""
    head = _BLOCK_HEAD.pack(_MAGIC, len(text), zlib.crc32(text))
    return (head + text).ljust(BLOCK, b"\0")[:BLOCK]


def record(slot: list[Any], record_bytes: int) -> bytes:
    """A slot as bytes with a right CRC over what its length says."""
    kind, length, sequence, monotonic, wall, payload = slot
    body = _RECORD_HEAD.pack(kind, length, sequence, monotonic, wall) + payload
    body = body.ljust(record_bytes - 4, b"\0")[: record_bytes - 4]
    covered = body[: _RECORD_HEAD_BYTES - 4 + length]
    return struct.pack("<I", zlib.crc32(covered)) + body


def repair(content: bytearray) -> None:
    """Put right CRCs wherever a header block or a record could be meant."""
    size = 64
    for start in (BLOCK, 0):
        if len(content) >= start + BLOCK:
            _, length, _ = _BLOCK_HEAD.unpack_from(content, start)
            text = bytes(content[start + _BLOCK_HEAD.size :][: min(length, BLOCK)])
            struct.pack_into("<I", content, start + 12, zlib.crc32(text))
            try:
                size = int(json.loads(text)["record_bytes"])
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                continue
    size = size if 64 <= size <= BLOCK else 64
    for start in range(RECORDS_AT, len(content) - size + 1, size):
        (length,) = struct.unpack_from("<H", content, start + 6)
        covered = content[start + 4 : start + min(_RECORD_HEAD_BYTES + length, size)]
        struct.pack_into("<I", content, start, zlib.crc32(covered))


def mutated_json(value: Any, chance: random.Random) -> Any:
    """A copy of a JSON value with one place changed."""
    root = [copy.deepcopy(value)]
    holder, key = _place(root, chance)
    if type(holder[key]) in (int, float) and chance.random() < 0.5:
        holder[key] = chance.choice(NUMBERS)
        return root[0]
    how = chance.randrange(6)
    if how == 0 and holder is not root:
        del holder[key]
    elif how == 1 and isinstance(holder[key], dict):
        holder[key][chance.choice(("format", "n", "t", "kind", "", "new"))] = _atom(chance)
    elif how == 2 and isinstance(holder[key], list):
        holder[key].extend(copy.deepcopy(holder[key][:4]) or [_atom(chance)])
    elif how == 3 and isinstance(holder[key], int) and not isinstance(holder[key], bool):
        holder[key] += chance.choice((-1, 1, -64, 64, holder[key]))
    else:
        holder[key] = _atom(chance)
    return root[0]


def _place(root: list[Any], chance: random.Random) -> tuple[Any, Any]:
    """A place in the value, found from the outside to the inside: what is far out is tried more often."""
    holder: Any = root
    key: Any = 0
    while chance.random() < 0.8:
        inner = holder[key]
        if not isinstance(inner, (dict, list)) or not inner:
            break
        holder = inner
        key = (
            chance.choice(list(inner)) if isinstance(inner, dict) else chance.randrange(len(inner))
        )
    return holder, key


def mutated_text(text: bytes, chance: random.Random) -> bytes:
    """A JSON text changed as JSON, or as bytes."""
    how = chance.randrange(5)
    if how < 3:
        try:
            return json.dumps(mutated_json(json.loads(text), chance)).encode()
        except (ValueError, RecursionError):
            pass
    if how == 3:
        return chance.choice(TEXTS)
    return bytes(raw(bytearray(text), chance))


def record_file(parts: Parts, chance: random.Random) -> bytes:
    """A record file with some of its places changed; most of its CRCs are right."""
    header, slots, size = parts.header, parts.slots, parts.record_bytes
    texts: list[bytes] | None = None
    for _ in range(chance.choice((1, 1, 2, 3))):
        if chance.random() < 0.3:
            header = mutated_json(header, chance)
            if chance.random() < 0.2:
                texts = [json.dumps(parts.header).encode(), json.dumps(header).encode()]
                chance.shuffle(texts)
            elif chance.random() < 0.1:
                texts = [mutated_text(json.dumps(header).encode(), chance) for _ in range(2)]
        else:
            slots = _mutated_slots(slots, chance)
    first, second = texts or [json.dumps(header).encode()] * 2
    body = b"".join([record(slot, size) for slot in slots])
    content = bytearray(block(first) + block(second) + body)
    if chance.random() < 0.35:
        content = raw(content, chance)
        if chance.random() < 0.5:
            repair(content)
    return bytes(content)


def _mutated_slots(slots: list[list[Any]], chance: random.Random) -> list[list[Any]]:
    slots = list(slots)
    if not slots:
        return [[1, 8, 1, 1.0, 1.0, bytes(8)]]
    at = chance.randrange(len(slots))
    slot = list(slots[at])
    how = chance.randrange(11)
    if how == 0:
        slot[0] = chance.choice(INTEGERS)
    elif how == 1:
        slot[1] = chance.choice(
            (*INTEGERS, slot[1] - 1 if slot[1] else 0, slot[1] + 1, slot[1] + 8)
        )
    elif how == 2:
        slot[2] = chance.choice((*SEQUENCES, slot[2] + 1, slots[chance.randrange(len(slots))][2]))
    elif how == 3:
        slot[chance.choice((3, 4))] = chance.choice(TIMES)
    elif how == 4:
        slot[5] = mutated_text(slot[5], chance)
        slot[1] = min(len(slot[5]), 65535)
    elif how == 5:
        slot[5] = bytes(raw(bytearray(slot[5]), chance))
    elif how == 6 and len(slot[5]) >= 8:
        number = struct.pack("<d", chance.choice(TIMES))
        place = 8 * chance.randrange(len(slot[5]) // 8)
        slot[5] = slot[5][:place] + number + slot[5][place + 8 :]
    elif how == 7:
        other = chance.randrange(len(slots))
        slots[at], slots[other] = slots[other], slots[at]
        return slots
    elif how == 8:
        slots.insert(chance.randrange(len(slots) + 1), slot)
        return slots
    elif how == 9:
        del slots[at]
        return slots
    else:
        slot[0], slot[2] = chance.choice((3, 4, 4)), slot[2] + chance.choice((0, 0, 1))
    slot[1] &= (1 << 16) - 1
    slot[2] &= (1 << 64) - 1
    slots[at] = slot
    return slots


def raw(content: bytearray, chance: random.Random) -> bytearray:
    """Bytes changed without any thought of what they mean."""
    if not content:
        return bytearray(chance.randbytes(chance.randrange(64)))
    how = chance.randrange(6)
    at = chance.randrange(len(content))
    if how == 0:
        content[at] ^= 1 << chance.randrange(8)
    elif how == 1:
        del content[at:]
    elif how == 2:
        end = at + chance.randrange(1, 512)
        content[at:end] = bytes(len(content[at:end]))
    elif how == 3:
        other = chance.randrange(len(content))
        part = content[other : other + chance.randrange(1, 512)]
        content[at : at + len(part)] = part
    elif how == 4:
        content[at:at] = chance.randbytes(chance.randrange(1, 32))
    else:
        content[at] = chance.choice((0, 1, 0x22, 0x5B, 0x7B, 0x7F, 0x80, 0xFF))
    return content


def _atom(chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(ATOMS))
