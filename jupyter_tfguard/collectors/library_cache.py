"""The dynamic loader's own list of libraries, ``/etc/ld.so.cache``, as ldconfig(8) wrote it.

Source: ``struct cache_file_new`` and ``struct file_entry_new`` of glibc's ``sysdeps/generic/dl-cache.h``; the older list
that old systems keep in front of it is passed over.
"""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sII20x")  # magic, number of libraries, bytes of text
_ENTRY = struct.Struct("<iIIIQ")  # flags, name, path, version of the OS kernel, processor features
_LIMIT_BYTES = 64 << 20
# Bits 8 to 15 of an entry's flags: what its library runs on. Others are for programs of another word length.
_FLAG_OF_PROCESSOR = {"x86_64": 0x0300, "aarch64": 0x0A00}


def cached_libraries(cache: Path, processor: str) -> dict[str, list[str]]:
    """Paths of each library by its soname, in the loader's order; empty when there is no cache or it is damaged."""
    try:
        with cache.open("rb") as file:
            content = file.read(_LIMIT_BYTES)
    except OSError:
        return {}
    start = content.find(_MAGIC)
    if start < 0:
        return {}
    found: dict[str, list[str]] = {}
    wanted = _FLAG_OF_PROCESSOR.get(processor)
    try:
        _, count, _ = _HEADER.unpack_from(content, start)
        for number in range(count):
            flags, name, path, _, _ = _ENTRY.unpack_from(
                content, start + _HEADER.size + number * _ENTRY.size
            )
            if wanted is None or flags & 0xFF00 == wanted:
                found.setdefault(_text(content, start + name), []).append(
                    _text(content, start + path)
                )
    except (struct.error, ValueError):
        return {}
    return found


def _text(content: bytes, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode("utf-8", "replace")
