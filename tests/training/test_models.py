"""Models are told apart by object: a loop that builds new ones is seen whatever their names are."""

from __future__ import annotations

import gc
import sys
import threading
from types import SimpleNamespace

import pytest

from jupyter_tfguard.training.models import ModelNumbers

pytestmark = pytest.mark.quick


class Model:
    def __init__(self, *, jit: bool = False) -> None:
        self._jit_compile = jit


def test_each_new_object_has_a_new_number_though_the_last_one_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "keras.src.backend.common.global_state", raising=False)
    fitted, same = ModelNumbers(), Model(jit=True)
    numbers = [fitted.facts(Model())["model_number"] for _ in range(5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert [fitted.facts(same)["model_number"] for _ in range(3)] == [6, 6, 6]
    gc.collect()
    facts = fitted.facts(same)
    assert facts["models_alive"] == 1
    assert facts["jit_compile"] is True
    assert facts["session_cleared"] is None


def test_clear_session_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(GLOBAL_STATE_TRACKER=threading.local())
    monkeypatch.setitem(sys.modules, "keras.src.backend.common.global_state", state)  # type: ignore[arg-type]
    fitted, model = ModelNumbers(), Model()
    found = [fitted.facts(model)["session_cleared"] for _ in range(2)]
    state.GLOBAL_STATE_TRACKER = threading.local()
    found += [fitted.facts(model)["session_cleared"] for _ in range(2)]
    assert found == [None, False, True, False]
