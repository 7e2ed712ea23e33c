"""Bytes of one number, from the name of its type."""

from __future__ import annotations

import pytest

from jupyter_tfguard.training.plan import item_bytes

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("float32", 4),
        ("uint8", 1),
        ("complex128", 16),
        ("bfloat16", 2),
        ("float8_e4m3fn", 1),
        ("bool", 1),
        ("string", 4),
    ],
)
def test_the_name_of_a_type_says_its_size(name: str, size: int) -> None:
    assert item_bytes(name) == size
