"""What the frames of stopped functions keep."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.guard.error import release_frames, renew_copies

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_released_frames_keep_no_variables_that_were_read() -> None:
    held: list[weakref.ref[Any]] = []

    def work() -> None:
        kept = np.ones(3)
        held.append(weakref.ref(kept))
        assert "kept" in sys._getframe().f_locals
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        work()
    assert held[0]() is not None
    release_frames(raised.value)
    assert held[0]() is None


def test_a_function_that_runs_drops_the_old_value_of_a_variable_that_was_read() -> None:
    kept: Any = np.ones(3)
    held = weakref.ref(kept)
    assert "kept" in sys._getframe().f_locals
    kept = None
    renew_copies(sys._getframe())
    assert held() is None
    assert kept is None
