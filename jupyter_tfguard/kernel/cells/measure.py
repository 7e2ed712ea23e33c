"""Estimates how much memory containers and objects hold, from samples, within a time limit.

Runs no user code: it reads built-in containers, instance dictionaries and slots with Python's own functions only, copies
nothing from a GPU, and evaluates nothing. What it cannot read counts nothing, so the estimate is a lower bound.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator
from inspect import CO_OPTIMIZED
from types import (
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

from .arrays import Sizes

CONTAINERS: tuple[Any, ...] = (list, dict, set, deque)
_ALL_CONTAINERS: tuple[Any, ...] = (*CONTAINERS, tuple, frozenset)
_SAMPLE = 33
_NESTED_SAMPLE = 9
_REVERSED_LIMIT = 5000  # entries of a dictionary or set that are passed to reach a sample
_DEPTH = 7
_NODES = 400  # objects per entry
# These belong to the program, not to the data.
_PROGRAM = (ModuleType, type, FunctionType, FrameType, CodeType)
_NUMBERS = (int, float, complex, bool)
LRU_CACHE: Any = functools._lru_cache_wrapper
_LRU_ENTRY = "_lru_list_elem"  # of a cache with a limit; not accessible by name


def container_base(value: Any, kinds: tuple[Any, ...] = CONTAINERS) -> Any:
    """The container class that the value is or extends; None if it is no container."""
    kind = type(value)
    return next((base for base in kinds if issubclass(kind, base)), None)


def attributes(value: Any) -> dict[str, Any]:
    """The instance dictionary and the slots of an object, read without its own code; empty if it has none."""
    found: dict[str, Any] = {}
    for kind in type.__dict__["__mro__"].__get__(type(value)):
        own = type.__dict__["__dict__"].__get__(kind)
        entry = own.get("__dict__")
        if type(entry) is GetSetDescriptorType and not found:
            # An object in a proxy of wrapt, as TensorFlow has them, has no dictionary, or not this one.
            with contextlib.suppress(AttributeError, TypeError):
                found = entry.__get__(value)
        elif "__slots__" in own and kind.__module__ != "builtins":
            slots = [one for one in own.items() if type(one[1]) is MemberDescriptorType]
            if slots:
                found = dict(found)
            for name, slot in slots:
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:
                    continue  # not set
    return found


def local_variables(frame: FrameType) -> dict[str, Any]:
    """The local variables of a function that runs or waits; empty for a module or class body."""
    code = frame.f_code
    if not code.co_flags & CO_OPTIMIZED:
        return {}
    kept = frame.f_locals
    found = dict(kept)
    # Before Python 3.13 the frame keeps this copy, and the variables would outlive the function. After a call of a profile
    # or trace function Python writes the copy back into the frame.
    if type(kept) is dict and sys.getprofile() is None and sys.gettrace() is None:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            kept.pop(name, None)
    return found


class Measure:
    """Measures values until its time is over; after that, nothing is measured.

    Args:
        seconds: Limit of its CPU time for all values together.
        elsewhere, gpu: As for :class:`~.arrays.Sizes`.
    """

    def __init__(
        self, seconds: float, elsewhere: Collection[int] = (), *, gpu: bool | None = False
    ) -> None:
        self._ends = time.thread_time() + seconds
        self._sizes = Sizes(elsewhere, gpu=gpu)
        self._counts_objects = not gpu

    @property
    def is_over(self) -> bool:
        """True if the time is over."""
        return time.thread_time() > self._ends

    def bytes_of(self, value: Any) -> int | None:
        """All that the value holds; None if it cannot be measured."""
        return self._tree(value, set(), 0)

    def newest_bytes(self, value: Any, added: int) -> int | None:
        """The newest `added` entries of a container; None if they cannot be measured."""
        if type(value) is LRU_CACHE:
            return self._of_cache(value, added)
        return self._entries(value, added, _SAMPLE, set(), 0)

    def _of_cache(self, value: Any, added: int) -> int | None:
        parts = gc.get_referents(value)
        own = next((one for one in parts if type(one) is dict and "__wrapped__" not in one), {})
        if any(type(one).__name__ == _LRU_ENTRY for one in itertools.islice(own.values(), 1)):
            # With a limit, the arguments and results are in entries that cannot be read.
            parts = [one for one in parts if type(one) not in (type, dict, object, FunctionType)]
            size = self._entries(parts, len(parts), _SAMPLE, set(), 0)
            return None if size is None else size * added // max(1, len(own))
        return self._entries(own, added, _SAMPLE, set(), 0)

    def _tree(self, root: Any, seen: set[int], depth: int) -> int | None:
        """Bytes of an object and of what it refers to, without what is in `seen`, to which both are added."""
        total, is_known, ahead = 0, False, [(root, depth)]
        for _ in range(_NODES):
            if not ahead:
                break
            one, depth = ahead.pop()
            if id(one) in seen:
                is_known |= one is not root
                continue
            seen.add(id(one))
            if type(one) in _NUMBERS:
                size: int | None = sys.getsizeof(one) if self._counts_objects else 0
            elif one is None or issubclass(type(one), _PROGRAM):
                continue
            elif (size := self._sizes.of(one)) is not None:
                pass
            elif (base := container_base(one, _ALL_CONTAINERS)) is not None:
                if depth >= _DEPTH or self.is_over:
                    continue
                size = self._entries(one, int(base.__len__(one)), _NESTED_SAMPLE, seen, depth + 1)
            elif depth < _DEPTH:
                ahead += [(part, depth + 1) for part in tuple(attributes(one).values())]
            if size is not None:
                total, is_known = total + size, True
        return total if is_known else None

    def _entries(self, value: Any, added: int, most: int, seen: set[int], depth: int) -> int | None:
        base = container_base(value, _ALL_CONTAINERS)
        if base is None:
            return None
        count = int(base.__len__(value))
        own = int(base.__sizeof__(value)) if self._counts_objects else 0
        if not count or not added:
            return own
        sample = _newest(value, base, min(added, count), most)
        # A key may be the large part, as in a dictionary that counts texts.
        columns = (
            [[key for key, _ in sample], [one for _, one in sample]] if base is dict else [sample]
        )
        found = [self._column(column, min(added, count), seen, depth) for column in columns]
        known = [size for size in found if size is not None]
        return sum(known) + own * added // count if known else None

    def _column(self, sample: list[Any], added: int, seen: set[int], depth: int) -> int | None:
        """Bytes of the `added` entries of which these are a sample."""
        sizes: list[int] = []
        is_known = False
        for entry in sample:
            size = self._tree(entry, seen, depth)
            is_known |= size is not None
            sizes.append(size or 0)
            if self.is_over:
                break
        if not is_known:
            return None
        if 2 * len({id(entry) for entry in sample}) <= len(sizes):
            return sum(sizes)  # the same few objects again and again
        if 2 < len(sizes) < added:
            # The first entry may include what all of them refer to.
            return sizes[0] + (added - 1) * sum(sizes[1:]) // (len(sizes) - 1)
        return sum(sizes) * added // len(sizes)


def _newest(value: Any, base: Any, added: int, most: int) -> list[Any]:
    """At most `most` entries, evenly spread over the newest `added`, newest first. Of a set, any entries."""
    count = int(base.__len__(value))
    step = max(1, added // most)
    try:
        if base in (list, tuple):
            places = range(count - 1, count - 1 - added, -step)
            return [base.__getitem__(value, place) for place in places[:most]]
        entries: Iterator[Any]
        if base is deque:
            entries = deque.__reversed__(value)
        elif base is dict:
            entries = iter(
                zip(reversed(dict.keys(value)), reversed(dict.values(value)), strict=False)
            )
        else:
            entries = base.__iter__(value)
        last = min(added, _REVERSED_LIMIT)
        return list(itertools.islice(entries, 0, last, max(1, last // most)))[:most]
    except (IndexError, RuntimeError):
        return []  # another thread changes it
