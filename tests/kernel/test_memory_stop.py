"""Which of the data that hold memory the message of a stop names."""

from __future__ import annotations

import pytest

from jupyter_tfguard.kept_data import Holder
from jupyter_tfguard.kernel.stop.memory_stop import worth_naming
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("added", "names"),
    [
        (64 * GIB, []),
        (GIB, ["kept"]),  # the results explain less than the cell added
        (128 * MIB, ["Out", "kept"]),
        (None, ["Out"]),  # a single request: only what is large
    ],
)
def test_what_is_worth_a_sentence(added: int | None, names: list[str]) -> None:
    held = [
        Holder("few", "few.", added_bytes=MIB),
        Holder("kept", "kept.", added_bytes=300 * MIB),
        Holder("Out", "Out.", added_bytes=600 * MIB, is_old=True),
        Holder("the last traceback", "It.", added_bytes=150 * MIB, is_old=True),
    ]
    assert [one.name for one in worth_naming(held, added, 2 * GIB)] == names
