"""A shared library with nothing in it but its dynamic section, and a loader's cache: what the doctor reads of real ones."""

from __future__ import annotations

import struct
from pathlib import Path

DT_RPATH, DT_RUNPATH = 15, 29


def write_library(path: Path, run_path: str = "", tag: int = DT_RUNPATH) -> None:
    """A 64-bit ELF file that was linked with this run path, after elf(5)."""
    strings = b"\0" + run_path.encode() + b"\0"
    headers, at = 64 + 2 * 56, 0x10000  # the file is mapped at an address of its own
    dynamic = struct.pack("<qQqQqQ", tag, 1, 5, at + headers + 48, 0, 0)
    size = headers + len(dynamic) + len(strings)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, at, at, size, size, 4096)
    found = struct.pack("<IIQQQQQQ", 2, 4, headers, at + headers, at, 48, 48, 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + load + found + dynamic + strings)


def write_cache(path: Path, libraries: dict[str, str], flags: int = 0x0303) -> None:
    """The loader's cache with these sonames and paths, as glibc 2.32 and later write it."""
    entries, strings = b"", b""
    at = 48 + 24 * len(libraries)
    for name, file in libraries.items():
        place = at + len(strings)
        strings += f"{name}\0{file}\0".encode()
        entries += struct.pack("<iIIIQ", flags, place, place + len(name) + 1, 0, 0)
    header = struct.pack("<20sII20x", b"glibc-ld.so.cache1.1", len(libraries), len(strings))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + entries + strings)
