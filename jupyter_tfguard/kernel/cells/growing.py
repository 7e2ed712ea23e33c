"""Finds what holds the memory that a cell or a round of training has added: objects that grew, by size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...kept_data import Holder, large_part
from ...units import human_bytes
from .arrays import Sizes, newest
from .hidden import last_error, lost_places, results, running_places, user_frames
from .measure import LRU_CACHE, Measure, container_base
from .reachable import Walk, amount, is_traced
from .wide_texts import wide_texts

# A container need not grow in every round: one may keep only every third batch.
_RISES_FRACTION = 0.8
_BEGIN_SECONDS = 0.005
_POLL_SECONDS = 0.02
_WALK_SECONDS = 0.02
_MEASURE_SECONDS = 0.04
_LOST_SECONDS = 0.1
_BEFORE = "before this cell"
_FREE_IT = "Delete what you no longer need."

Named = Iterable[tuple[str, Any]]


@dataclass(slots=True)
class _Seen:
    first: int
    last: int
    rises: int = 0


class Growing:
    """Compares amounts between readings: entries of containers, bytes of arrays and texts."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._readings = 0

    def poll(self, places: Named) -> None:
        """Read the amounts. `places`: from :func:`~.reachable.places_of`."""
        self._readings += 1
        sizes = Sizes()
        for name, value in places:
            found = amount(value, sizes)
            if found is None:
                continue
            seen = self._seen.get(name)
            if seen is None or found < seen.last:
                self._seen[name] = _Seen(found, found)
            else:
                seen.rises += found > seen.last
                seen.last = found

    def grown(self, places: Named, unit: str, rounds: int, *, gpu: bool = False) -> list[Holder]:
        """What grew at nearly every reading, largest growth in bytes first.

        Args:
            places: From :func:`~.reachable.places_of`.
            unit: What the readings compare: ``epoch``.
            rounds: How many of these ago they were read first.
            gpu: Whether GPU memory is compared.
        """
        found: dict[int, Holder] = {}
        measure = Measure(_MEASURE_SECONDS, gpu=gpu)
        for name, value in places:
            seen = self._seen.get(name)
            is_grown = seen is not None and seen.rises >= _RISES_FRACTION * (self._readings - 1)
            if seen is not None and is_grown and seen.last > seen.first and id(value) not in found:
                one = holder(name, value, seen.first, f"{rounds} {unit}s ago", measure)
                if one is not None:
                    found[id(value)] = one
        return _sorted(found.values())


class CellHolders:
    """Finds what holds the memory that a cell has added.

    Args:
        namespace: The user's global names.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._before: dict[int | str, int] = {}
        self._names: set[str] = set()
        self._is_complete = True

    def begin(self) -> None:
        """Read all amounts at the start of a cell."""
        sizes, walk = Sizes(), Walk(_BEGIN_SECONDS)
        top = [one for one in newest(self._namespace) if not sizes.is_array(one[1])]
        self._before = {}
        for name, value in top:  # first, in case that the time is not enough for what is inside
            if (base := container_base(value)) is not None:
                self._before[id(value)] = self._before[name] = int(base.__len__(value))
        for place, value in top:
            for name, one in walk.into(place, value):
                if (found := amount(one, sizes)) is not None:
                    self._before[id(one)] = self._before[name] = found
        self._names = {name for name, _ in top}
        self._is_complete = not walk.is_over

    def found(
        self,
        objects: Named = (),
        added_bytes: int | None = None,
        hurry: Callable[[], bool] = lambda: False,
        *,
        was_full: bool = False,
    ) -> list[Holder]:
        """What grew since the start of the cell, and what IPython keeps of earlier cells; largest first.

        Args:
            objects: Objects of the running fit, by name.
            added_bytes: Memory that the cell has added; None if unknown.
            hurry: Returns whether the longer searches must be left out.
            was_full: The memory was nearly full when the cell began, so what did not grow is of interest too.
        """
        walk = Walk(_WALK_SECONDS)
        top = newest(self._namespace)
        places = [place for name, value in top for place in walk.into(name, value)]
        sizes = Sizes()
        arrays = {id(value) for _, value in top if sizes.is_array(value)}
        elsewhere = {id(value) for _, value in places if container_base(value) is None}
        places += [place for name, value in objects for place in walk.into(name, value)]
        walk.extend(_WALK_SECONDS)
        places += running_places(walk)
        measure = Measure(_MEASURE_SECONDS, elsewhere)
        found = self._grown(places, arrays, measure)
        of_ipython = [
            results(self._namespace, measure),
            last_error(elsewhere, measure),
        ]
        found += [one for one in of_ipython if one is not None]
        if was_full:
            grown = {one.name for one in found}
            known = [one for one in places if id(one[1]) not in arrays and one[0] not in grown]
            found += _as_it_is(known, measure, is_old=True)
        if added_bytes:
            made = (wide_texts(frame, added_bytes) for frame in user_frames())
            found += [one for one in made if one is not None][:1]
        if added_bytes and (was_full or not large_part(found, added_bytes)) and not hurry():
            walk.extend(_LOST_SECONDS)
            lost = list(lost_places(walk))
            found += _as_it_is(lost, Measure(_MEASURE_SECONDS, elsewhere), is_old=was_full)
        return _sorted(found)

    def _grown(self, places: Named, arrays: set[int], measure: Measure) -> list[Holder]:
        sizes, found = Sizes(), {}
        for name, value in places:
            # The largest variables are listed anyway; a function of TensorFlow has no size.
            if id(value) in arrays or id(value) in found or is_traced(type(value)):
                continue
            before = self._before.get(id(value), self._before.get(name))
            if before is None and not self._is_complete and _root(name) in self._names:
                continue  # it may be as it was
            before = before or 0
            if (amount(value, sizes) or 0) > before:
                one = holder(name, value, before, _BEFORE, measure)
                if one is not None and one.added_bytes is not None:
                    found[id(value)] = one
        return list(found.values())


def _as_it_is(places: Named, measure: Measure, *, is_old: bool) -> list[Holder]:
    """What holds memory, without a comparison. `is_old`: it may be from earlier cells."""
    found: dict[int, Holder] = {}
    names: list[str] = []
    for name, value in places:
        if id(value) in found or is_traced(type(value)) or name.startswith(tuple(names)):
            continue
        one = holder(name, value, 0, "", measure)
        if one is not None and one.added_bytes is not None:
            how = _FREE_IT if is_old else one.how
            found[id(value)] = replace(one, how=how, is_old=is_old)
            names += [f"{name}.", f"{name}["]
    return list(found.values())


def holder(name: str, value: Any, before: int, since: str, measure: Measure) -> Holder | None:
    """Describe what grew; None if nothing is known of it.

    Args:
        name: As the user would write it.
        value: The object.
        before: Its earlier amount.
        since: When that was: ``3 epochs ago``; empty if nothing is known of it.
        measure: Measures what it has now.
    """
    count = amount(value, Sizes())
    if count is None:
        return None
    added = count - before
    if is_traced(type(value)):
        text = f"{name} was traced {added} times since {since}: call it with tensors, not with Python numbers."
        return Holder(name, text, added_count=added)
    if container_base(value) is None and type(value) is not LRU_CACHE:
        more = "" if not before else f", {human_bytes(added)} more than {since}"
        text = f"{name} is {human_bytes(count)}{more}."
        return Holder(name, text, "Shorten what grew.", added, count)
    size = measure.newest_bytes(value, added)
    about = "" if size is None else f", about {human_bytes(size)}"
    entries = "1 entry" if count == 1 else f"{count:,} entries"
    limit = deque.maxlen.__get__(value) if issubclass(type(value), deque) else None
    whole = size if added == count else measure.newest_bytes(value, count)
    if limit is not None:
        full = None if whole is None else whole * limit // max(1, count)
        text = f"{name} has {entries} of the {limit:,} that its maxlen allows{about}."
        return Holder(name, text, "Use a smaller maxlen.", size, whole, count, added, full)
    more = f", {added:,} more than {since}" if since else ""
    text = f"{name} has {entries}{more}{about}."
    how = (
        f"`{name}.cache_clear()` empties it."
        if type(value) is LRU_CACHE
        else "Empty or shorten what grew."
    )
    return Holder(name, text, how, size, whole, count, added)


def _root(name: str) -> str:
    """``keep`` of ``keep.kept`` and of ``keep['x']``."""
    return name.partition(".")[0].partition("[")[0]


def _sorted(found: Iterable[Holder]) -> list[Holder]:
    return sorted(found, key=lambda one: (-(one.added_bytes or 0), -(one.added_count or 0)))
