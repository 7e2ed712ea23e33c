"""Untrusted JSON becomes dataclasses: what is wrong or out of bounds is unknown, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from jupyter_tfguard.decode import (
    LARGEST_WHOLE,
    LIST_LIMIT,
    TEXT_LIMIT,
    decode,
    json_object,
    number_of,
    size_of,
    text_of,
    whole_of,
)

pytestmark = pytest.mark.quick

JUNK = [None, True, "x", "", [], {}, float("nan"), float("inf"), -float("inf"), 1e301, 10**400]


@dataclass(frozen=True)
class Part:
    name: str
    size_bytes: Annotated[int | None, size_of] = None


@dataclass(frozen=True)
class Whole:
    count: int | None
    seconds: float | None
    ok: bool | None
    head: Annotated[str | None, 3]
    logs: dict[str, Any]
    label: str = "none"
    parts: tuple[Part, ...] = ()
    shape: tuple[int, ...] | None = None
    few: Annotated[tuple[int, ...], 2] = ()
    part: Part | None = None


UNKNOWN = Whole(None, None, None, None, {})


def test_known_fields_are_read_and_unknown_keys_are_ignored() -> None:
    read = decode(
        Whole,
        {
            "count": 3.0,
            "seconds": 1,
            "ok": False,
            "head": "abcdef",
            "label": "of a fit",
            "parts": [{"name": "a", "size_bytes": -1}, {"name": ""}, {"size_bytes": 5}, "junk"],
            "shape": [8, None, 3],
            "few": [1, 2, 3],
            "part": {"name": "b", "size_bytes": 7},
            "logs": {"loss": float("inf")},
            "later": 1,
        },
    )
    parts = (Part("a", None),)
    logs = {"loss": float("inf")}
    assert read == Whole(3, 1, False, "abc", logs, "of a fit", parts, (8, 3), (1, 2), Part("b", 7))


def test_nothing_is_known_of_an_empty_object() -> None:
    assert decode(Whole, {}) == UNKNOWN


@pytest.mark.parametrize("junk", [None, "x", 3, [], [{}]])
def test_what_is_no_object_is_unknown(junk: object) -> None:
    assert decode(Whole, junk) is None
    assert decode(Part, {"name": junk} if junk != "x" else {}) is None


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_a_wrong_field_is_unknown_and_spoils_no_other(junk: object) -> None:
    for name in ("count", "seconds"):
        assert decode(Whole, {name: junk, "head": "a"}) == Whole(None, None, None, "a", {})
    if junk != "x":
        for name in ("head", "label", "part"):
            assert decode(Whole, {name: junk, "ok": junk is True}) == Whole(
                None, None, junk is True, None, {}
            )
    if junk != []:
        for name in ("parts", "shape", "few"):
            assert decode(Whole, {name: junk}) == UNKNOWN


def test_bounds() -> None:
    assert whole_of(LARGEST_WHOLE) == LARGEST_WHOLE
    assert whole_of(LARGEST_WHOLE + 2) is None
    assert number_of(1e299) == 1e299
    assert size_of(-1) is None
    assert text_of("\ud800a") == "?a"
    long = decode(Whole, {"label": "x" * 10_000, "shape": [1] * 10_000})
    assert long == Whole(None, None, None, None, {}, "x" * TEXT_LIMIT, shape=(1,) * LIST_LIMIT)


@pytest.mark.parametrize("text", [b"", None, b"[]", b"{", b"\xff", b"[" * 100_000, "1"])
def test_only_an_object_is_an_object(text: bytes | str | None) -> None:
    assert json_object(text) is None


def test_an_object_is_read() -> None:
    assert json_object(b'{"a": 1}') == {"a": 1}
