"""Reads parsed JSON that is not trusted: a notebook can write anything into its own recording.

A value of the wrong type, or beyond the bounds below, is unknown: None. ``decode`` does this for a whole dataclass.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, TypeVar

from .units import is_known

LARGEST_WHOLE = 2**53  # beyond it, JavaScript and floats skip integers
TEXT_LIMIT = 4096  # of the fields of a dataclass; an event has no more bytes
LIST_LIMIT = 1000

_T = TypeVar("_T")
_Read = Callable[[object], Any]


def json_object(text: bytes | str | None) -> dict[str, Any] | None:
    """The JSON object; None for anything else, also for text that is no JSON."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def number_of(value: object) -> float | None:
    """The number; None for anything else, NaN and infinite numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_known(value):
        return None
    return value


def whole_of(value: object) -> int | None:
    """The number without its fraction; None if the value is not a number or too large."""
    found = number_of(value)
    return None if found is None or abs(found) > LARGEST_WHOLE else int(found)


def size_of(value: object) -> int | None:
    """A size or count; None for anything that cannot be one, such as 1.5 or -1."""
    found = whole_of(value)
    return found if found is not None and found == value and found >= 0 else None


def flag_of(value: object) -> bool | None:
    """True or False; None for anything else."""
    return value if isinstance(value, bool) else None


def text_of(value: object, limit: int | None = None) -> str | None:
    """The text, at most `limit` characters of it; None if the value is not a text, or empty."""
    if not isinstance(value, str) or not value:
        return None
    # A lone surrogate would break the message to the panel.
    return value[:limit].encode("utf-8", "replace").decode()


def dict_of(value: object) -> dict[str, Any]:
    """The dictionary; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The list, or the tuple as a list; an empty one for anything else."""
    return list(value) if isinstance(value, (list, tuple)) else []


def lines_of(value: object) -> list[str]:
    """The texts in a list; an empty list for anything else."""
    return [line for line in list_of(value) if isinstance(line, str)]


def decode(cls: type[_T], value: object) -> _T | None:
    """An instance of a dataclass; keys that it does not have are ignored.

    A wrong field is None if its type allows None, else its default, else empty if it is a tuple or dictionary. A wrong field of
    another type makes the whole unknown. The types may be ``int``, ``float``, ``str``, ``bool``, dataclasses,
    ``tuple[X, ...]``, ``dict[str, Any]`` and ``Any``. With ``Annotated``, a number is the limit of a text or of a tuple, and a
    function reads the value.
    """
    if not isinstance(value, dict):
        return None
    kind: Any = cls
    found = {}
    for name, read, otherwise in _fields(kind):
        known = read(value.get(name))
        if known is None:
            if otherwise is None:
                return None
            known = otherwise()
        found[name] = known
    return cls(**found)


@functools.cache
def _fields(cls: type) -> list[tuple[str, _Read, Callable[[], Any] | None]]:
    """Name, reader, and what a wrong value is read as; None if the whole is unknown then."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return [(one.name, _reader(hints[one.name]), _otherwise(one, hints)) for one in fields(cls)]


def _otherwise(one: Field[Any], hints: Mapping[str, Any]) -> Callable[[], Any] | None:
    hint = hints[one.name]
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    if hint is Any or types.NoneType in typing.get_args(hint):
        return lambda: None
    if one.default is not MISSING:
        return lambda: one.default
    return typing.get_origin(hint) if typing.get_origin(hint) in (tuple, dict) else None


def _reader(hint: Any, limit: Any = None) -> _Read:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return inner[1] if callable(inner[1]) else _reader(inner[0], inner[1])
    if origin in (typing.Union, types.UnionType):
        (kind,) = (one for one in inner if one is not types.NoneType)
        return _reader(kind, limit)
    if origin is tuple:
        return functools.partial(_tuple, _reader(inner[0]), limit or LIST_LIMIT)
    if isinstance(hint, type) and is_dataclass(hint):
        return functools.partial(decode, hint)
    if hint is str:
        return functools.partial(text_of, limit=limit or TEXT_LIMIT)
    return _READERS[origin or hint]


def _tuple(read: _Read, limit: int, value: object) -> tuple[Any, ...] | None:
    if not isinstance(value, (list, tuple)):
        return None
    return tuple(found for one in value[:limit] if (found := read(one)) is not None)


def _mapping(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


_READERS: Mapping[Any, _Read] = {
    int: whole_of,
    float: number_of,
    bool: flag_of,
    dict: _mapping,
    Any: lambda value: value,
}
