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

from ..kept_data import Holder
from ..units import human_bytes
from .arrays import Sizes, newest

_CONTAINERS: tuple[Any, ...] = (list, dict, set, deque)
_PLAIN = (int, float, bool, str, bytes)
_TRACING_COUNT = "experimental_get_tracing_count"
_LIBRARIES = ("keras", "tensorflow", "tf_keras")
_IPYTHON_NAMES = ("In", "Out")
# A container need not grow in every round: one may keep only every third batch.
_RISES_FRACTION = 0.8
_EMPTY_IT = "Empty or shorten what grew."


@dataclass(slots=True)
class _Seen:
    first: int
    last: int
    rises: int = 0


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

    def grown(self, places: Iterable[tuple[str, Any]], unit: str, rounds: int) -> list[Holder]:
        """Objects that grew at nearly every reading, largest growth in bytes first.

        Args:
            places: From :func:`places_of`.
            unit: What the readings compare: ``epoch``.
            rounds: How many of these ago they were read first.
        """
        sizes = Sizes()
        found = [
            _traced(name, seen, f"{rounds} {unit}s")
            if _base(value) is None
            else _container(
                name, value, seen.last, seen.last - seen.first, f"{rounds} {unit}s ago", sizes
            )
            for name, value in places
            if (seen := self._seen.get(name)) is not None
            and seen.rises >= _RISES_FRACTION * (self._readings - 1)
        ]
        return sorted(found, key=lambda one: (-(one.added_bytes or 0), -(one.added_count or 0)))


def lengths(places: Iterable[tuple[str, Any]]) -> dict[int, int]:
    """Entries of each container, by its ``id()``. `places`: from :func:`places_of`."""
    return {
        id(value): int(base.__len__(value))
        for _, value in places
        if (base := _base(value)) is not None
    }


def grown_since(before: Mapping[int, int], places: Iterable[tuple[str, Any]]) -> list[Holder]:
    """Containers that have more entries than in `before`, or are not in it; largest growth in bytes first.

    Args:
        before: From :func:`lengths`.
        places: From :func:`places_of`. A container with two names has the first of them.
    """
    sizes = Sizes()
    found: dict[int, Holder] = {}
    for name, value in places:
        if (base := _base(value)) is None:
            continue
        count = int(base.__len__(value))
        added = count - before.get(id(value), 0)
        if added <= 0 or id(value) in found:
            continue
        one = _container(name, value, count, added, "before this cell", sizes)
        if one.added_bytes is not None:
            found[id(value)] = one
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


def _container(name: str, value: Any, count: int, added: int, since: str, sizes: Sizes) -> Holder:
    size = _added_bytes(value, added, sizes)
    about = "" if size is None else f", about {human_bytes(size)}"
    text = f"{name} has {count:,} entries, {added:,} more than {since}{about}."
    return Holder(name, text, _EMPTY_IT, size, count=count, added_count=added)


def _traced(name: str, seen: _Seen, during: str) -> Holder:
    times = seen.last - seen.first
    text = f"{name} was traced {times} times in {during}: call it with tensors, not with Python numbers."
    return Holder(name, text, added_count=times)


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
