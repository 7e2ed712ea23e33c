"""The run path that a shared library was linked with: the folders it looks in for the libraries it opens.

Source: elf(5); ld.so(8) for what the two kinds of run path mean.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import SourceUnavailable

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 5, 15, 29
_HEADERS_LIMIT, _ENTRIES_LIMIT = 128, 4096
_TEXT_LIMIT_BYTES = 1 << 20  # TensorFlow 2.21 repeats its folders until they fill 60 KB


@dataclass(frozen=True)
class RunPath:
    """Folders in order, without repetition.

    Attributes:
        before_environment: It is searched before ``LD_LIBRARY_PATH`` (``DT_RPATH``), not after it (``DT_RUNPATH``).
    """

    folders: tuple[Path, ...] = ()
    before_environment: bool = False


def run_path(library: Path) -> RunPath:
    """The run path of a 64-bit little-endian library, ``$ORIGIN`` filled in.

    Raises:
        SourceUnavailable: It cannot be read, or is no such library.
    """
    try:
        with library.open("rb") as file:
            found = _dynamic_texts(file)
    except (OSError, struct.error, ValueError, OverflowError) as bad:
        raise SourceUnavailable(f"{library}: its run path cannot be read ({bad})") from bad
    text = found.get(_DT_RUNPATH, found.get(_DT_RPATH, ""))
    origin = str(library.absolute().parent)
    entries = (e.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for e in text.split(":"))
    folders = dict.fromkeys(Path(e) for e in entries if e.startswith("/"))
    return RunPath(tuple(folders), _DT_RUNPATH not in found)


def _dynamic_texts(file: BinaryIO) -> dict[int, str]:
    header = _read(file, 0, 64)
    if header[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (at,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    if count > _HEADERS_LIMIT:
        raise ValueError(f"{count} program headers")
    headers = _read(file, at, size * count)
    loads, dynamic = [], None
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", headers, number * size)
        if kind == _PT_LOAD:
            loads.append((address, offset, length))
        elif kind == _PT_DYNAMIC:
            dynamic = offset
    if dynamic is None:
        raise ValueError("no dynamic section")
    entries = {}
    section = _read(file, dynamic, _ENTRIES_LIMIT * 16)
    for tag, value in struct.iter_unpack("<qQ", section[: len(section) // 16 * 16]):
        if tag == 0:
            break
        entries[tag] = value
    strings = _offset(entries[_DT_STRTAB], loads) if _DT_STRTAB in entries else 0
    return {
        tag: _string(file, strings + entries[tag])
        for tag in (_DT_RPATH, _DT_RUNPATH)
        if tag in entries
    }


def _offset(address: int, loads: list[tuple[int, int, int]]) -> int:
    for start, offset, length in loads:
        if start <= address < start + length:
            return address - start + offset
    raise ValueError("its string table lies outside of it")


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _string(file: BinaryIO, at: int) -> str:
    return _read(file, at, _TEXT_LIMIT_BYTES).split(b"\0", 1)[0].decode("utf-8", "replace")
