"""Sizes that a line of a log gives: what was used, and the limit. Lines use many units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..units import human_bytes
from .log_lines import LogLine

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"^(?P<number>\d{1,18}(?:\.\d{1,6})?) ?(?P<unit>[KMGTkmgt]?)i?[Bb]?$")
_KEYS = {"kib": 2**10, "mib": 2**20, "bytes": 1}
# memory: usage 6291456kB, limit 6291456kB, failcnt 118: of the group whose limit was reached
_USAGE = re.compile(r"\bmemory: usage (?P<used>\d{1,15})kB, limit (?P<limit>\d{1,15})kB")
_NO_LIMIT_BYTES = 2**60
# memory:  4Gi
_MEMORY = re.compile(r"memory: {1,8}(?P<size>\d{1,15}[KMGTkm]?i?)$")


def size_bytes(text: str) -> int | None:
    """Bytes of ``27811224Ki``, ``18.42GB`` or ``14.9G``; None for another text. 1 GB counts as 1 GiB, as these programs do."""
    found = _SIZE.match(text.strip())
    return None if found is None else int(float(found["number"]) * _UNITS[found["unit"].lower()])


def named_bytes(details: Mapping[str, str], name: str) -> int | None:
    """The size under ``used`` or ``limit``, whatever unit the line gave it in; None when it gave none."""
    for unit, factor in _KEYS.items():
        if (value := details.get(f"{name}_{unit}")) is not None:
            return int(value) * factor
    return size_bytes(details[name]) if name in details else None


def readable(text: str) -> str:
    """The size with the project's units; the text itself when it is no size."""
    size = size_bytes(text)
    return text if size is None or not re.search(r"[A-Za-z]", text) else human_bytes(size)


def pod_limit_bytes(lines: Sequence[LogLine]) -> int | None:
    """The memory limit in a pod's description (``Limits:``, then ``memory:  4Gi``); None when it gives none."""
    for place, line in enumerate(lines):
        if line.message.lower().rstrip(":") == "limits":
            near = (_MEMORY.match(other.message) for other in lines[place + 1 : place + 4])
            if found := next((hit for hit in near if hit), None):
                return size_bytes(found["size"])
    return None


def group_limit_bytes(lines: list[LogLine]) -> int | None:
    """The limit of the group whose use and limit the operating system's log gives last; None when it gives none."""
    for line in reversed(lines):
        if "memory: usage" in line.text and (found := _USAGE.search(line.text)):
            limit = int(found["limit"]) * 1024
            return limit if limit < _NO_LIMIT_BYTES else None
    return None
