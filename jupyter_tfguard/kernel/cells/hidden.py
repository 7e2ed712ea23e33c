"""What no name of the notebook reaches, but keeps memory: functions that run, generators, lost objects, results, errors.

For the moment of a stop or an alarm only: it may take some ten milliseconds.
"""

from __future__ import annotations

import gc
import itertools
import sys
import traceback
from collections.abc import Collection, Iterator
from types import FrameType, GeneratorType
from typing import Any

from ...kept_data import Holder
from ...threads import frames_of_others
from ...units import human_bytes
from .arrays import newest
from .measure import Measure, local_variables
from .reachable import Places, Walk, is_users, is_users_class

_FRAMES = 60
_RESULTS = 500
# More objects are not listed. The collector tracks a quarter of what is allocated after TensorFlow is imported, 2 million:
# 8 bytes each.
_OBJECTS = 4_000_000
_LARGE_FRACTION = 0.01  # of the largest result; smaller ones are not counted
_ERRORS = ("last_value", "last_exc")
_RESULTS_HOW = "`%reset -f out` frees them; end the line with `;` to keep none."
_ERROR_HOW = "The next error replaces it: run a cell with `1/0`."


def running_places(walk: Walk) -> Places:
    """Local variables of the user's functions that run now, in any thread, or that an error in flight has left."""
    for frame in user_frames():
        yield from walk.locals_of(frame)


def user_frames() -> Iterator[FrameType]:
    """The user's functions and cells that run now, in any thread, or that an error in flight has left."""
    return (frame for frame in _frames() if _is_of_user(frame))


def _frames() -> Iterator[FrameType]:
    yield from _up(sys._getframe(1))
    for top in frames_of_others().values():
        yield from _up(top)
    error, seen = sys.exc_info()[1], 0
    while error is not None and seen < _FRAMES:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            yield from _up(frame)
        error, seen = error.__cause__ or error.__context__, seen + 1


def _up(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _is_of_user(frame: FrameType) -> bool:
    found = frame.f_globals
    return is_users(found.get("__file__"), found.get("__name__"))


def lost_places(walk: Walk) -> Places:
    """Generators and objects of the user's classes that only others hold, for example a dataset of TensorFlow.

    Args:
        walk: What it has visited is left out.
    """
    if sys.getallocatedblocks() > _OBJECTS:
        return  # the lists of them would take the memory that is left
    known: dict[type, bool] = {}
    # The newest first: those of libraries are the oldest, and many.
    of_age = [gc.get_objects(generation) for generation in range(3)]
    for place, one in enumerate(itertools.chain(*of_age[:2], reversed(of_age[2]))):
        kind = type(one)
        is_wanted = known.get(kind)
        if is_wanted is None:
            is_wanted = known[kind] = kind is GeneratorType or is_users_class(kind)
        if is_wanted and (kind is not GeneratorType or _waits(one)):
            yield from walk.into(kind.__name__, one)
        if not place % 1000 and walk.read_clock():
            return


def _waits(generator: Any) -> bool:
    frame = generator.gi_frame
    return frame is not None and _is_of_user(frame)


def results(namespace: dict[str, Any], measure: Measure) -> Holder | None:
    """What IPython keeps of the results of earlier cells; None if that is nothing.

    Args:
        namespace: The user's global names; a result that has a name would stay.
        measure: Measures them.
    """
    named = {id(value) for _, value in newest(namespace)}
    kept = namespace.get("_oh")
    if type(kept) is not dict or not kept:
        return None
    sizes = [
        size
        for value in list(kept.values())[-_RESULTS:]
        if id(value) not in named and (size := measure.bytes_of(value))
    ]
    if not sizes:
        return None
    size = sum(sizes)
    count = sum(one >= _LARGE_FRACTION * max(sizes) for one in sizes)
    whose = "The result of 1 cell is" if count == 1 else f"The results of {count} cells are"
    text = f"{whose} kept in Out, about {human_bytes(size)}."
    return Holder("Out", text, _RESULTS_HOW, size, size, count, is_old=True)


def last_error(elsewhere: Collection[int], measure: Measure) -> Holder | None:
    """What the traceback of the last error that was shown keeps; None if that is nothing."""
    size, seen = 0, set(elsewhere)
    names: list[tuple[int, str]] = []
    for error in {id(one): one for one in (getattr(sys, name, None) for name in _ERRORS)}.values():
        if not isinstance(error, BaseException):
            continue
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for name, value in local_variables(frame).items():
                if id(value) not in seen and (one := measure.bytes_of(value)):
                    size += one
                    names.append((one, f"{name} in {frame.f_code.co_name}()"))
                seen.add(id(value))
    if not names:
        return None
    text = f"The traceback of the last error keeps about {human_bytes(size)}, most of it {max(names)[1]}."
    return Holder("the last traceback", text, _ERROR_HOW, size, size, is_old=True)
