"""Finds the user's containers that grow steadily, such as a list that a loop appends to.

Reads only lengths that are cheap to read, and runs no user code: lists, dictionaries, sets and deques at the top level
of the notebook and in the user's callbacks, and how often a ``tf.function`` was traced.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..units import human_bytes
from .arrays import Sizes, newest

_CONTAINERS: tuple[Any, ...] = (list, dict, set, deque)
_PLAIN = (int, float, bool, str, bytes)
_TRACING_COUNT = "experimental_get_tracing_count"
_LIBRARIES = ("keras", "tensorflow", "tf_keras")
_IPYTHON_NAMES = ("In", "Out")
# A container need not grow in every round: one may keep only every third batch.
_RISES_FRACTION = 0.8


@dataclass(slots=True)
class _Seen:
    first: int
    last: int
    rises: int = 0


@dataclass(frozen=True, slots=True)
class Grown:
    """A container that grew.

    Attributes:
        name: ``kept``, or ``Collect.kept`` for an attribute of a callback.
        count: Entries now; for a function, how often it was traced.
        added: Entries added since the first reading.
        added_bytes: Size of the added entries, estimated from the last one; None if it cannot be measured.
        is_function: It is a ``tf.function``.
    """

    name: str
    count: int
    added: int
    added_bytes: int | None
    is_function: bool = False

    def text(self, than: str) -> str:
        """What the container holds, a sentence. `than`: when it was read first, like ``3 epochs ago``."""
        size = "" if self.added_bytes is None else f", about {human_bytes(self.added_bytes)}"
        return f"{self.name} has {self.count:,} entries, {self.added:,} more than {than}{size}."


class Growing:
    """Compares the lengths of containers between readings."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._readings = 0

    def look(self, places: Iterable[tuple[str, Any]]) -> None:
        """Read the lengths. `places`: from :func:`places_of`."""
        self._readings += 1
        for name, value in places:
            count = _count(value)
            if count is None:
                continue
            seen = self._seen.get(name)
            if seen is None or count < seen.last:
                self._seen[name] = _Seen(count, count)
            else:
                seen.rises += count > seen.last
                seen.last = count

    def grown(self, places: Iterable[tuple[str, Any]]) -> list[Grown]:
        """Containers that grew at nearly every reading, largest growth in bytes first."""
        sizes = Sizes()
        found = [
            Grown(
                name,
                seen.last,
                seen.last - seen.first,
                _added_bytes(value, seen.last - seen.first, sizes),
                _base(value) is None,
            )
            for name, value in places
            if (seen := self._seen.get(name)) is not None
            and seen.rises >= _RISES_FRACTION * (self._readings - 1)
        ]
        return sorted(found, key=lambda one: (-(one.added_bytes or 0), -one.added))


def lengths(places: Iterable[tuple[str, Any]]) -> dict[int, int]:
    """Entries of each container, by its ``id()``. `places`: from :func:`places_of`."""
    return {
        id(value): int(base.__len__(value))
        for _, value in places
        if (base := _base(value)) is not None
    }


def grown_since(before: Mapping[int, int], places: Iterable[tuple[str, Any]]) -> list[Grown]:
    """Containers that have more entries than in `before`, or are not in it; largest growth in bytes first.

    Args:
        before: From :func:`lengths`.
        places: From :func:`places_of`. A container with two names has the first of them.
    """
    sizes = Sizes()
    found: dict[int, Grown] = {}
    for name, value in places:
        if (base := _base(value)) is None:
            continue
        count = int(base.__len__(value))
        added = count - before.get(id(value), 0)
        if added > 0 and (size := _added_bytes(value, added, sizes)) is not None:
            found.setdefault(id(value), Grown(name, count, added, size))
    return sorted(found.values(), key=lambda one: -(one.added_bytes or 0))


def places_of(
    namespace: dict[str, Any], callbacks: Iterable[Any] = ()
) -> Iterator[tuple[str, Any]]:
    """(name, value) of possible holders: attributes of the user's callbacks, and the newest names of the notebook."""
    for callback in callbacks:
        kind = type(callback)
        attributes = getattr(callback, "__dict__", None)
        if kind.__module__.partition(".")[0] in _LIBRARIES or not isinstance(attributes, Mapping):
            continue
        for name, value in tuple(attributes.items()):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}"[:80], value
    for name, value in newest(namespace):
        if name not in _IPYTHON_NAMES:
            yield name, value


def _base(value: Any) -> Any:
    """The container class that the value is or extends; None if it is no container."""
    return next((base for base in _CONTAINERS if issubclass(type(value), base)), None)


def _count(value: Any) -> int | None:
    if (base := _base(value)) is not None:
        return int(base.__len__(value))
    kind = type(value)
    if kind.__module__.startswith("tensorflow.") and hasattr(kind, _TRACING_COUNT):
        return int(getattr(value, _TRACING_COUNT)())
    return None


def _added_bytes(value: Any, added: int, sizes: Sizes) -> int | None:
    base = _base(value)
    try:
        if base in (list, deque):
            last = base.__getitem__(value, -1)  # not the user's own method
        elif base is dict:
            last = next(reversed(dict.values(value)))
        else:
            return None
    except (IndexError, StopIteration, RuntimeError):
        return None
    size = sys.getsizeof(last) if type(last) in _PLAIN else sizes.of(last)
    return None if size is None else size * added
