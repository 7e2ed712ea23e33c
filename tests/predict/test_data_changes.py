"""Memory that data need without a reason."""

from __future__ import annotations

import pytest

from jupyter_tfguard.predict.changes import data_changes
from jupyter_tfguard.training.plan import FitPlan
from jupyter_tfguard.units import MIB

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.quick


def test_a_large_array_of_float64_is_named_with_its_conversion() -> None:
    wide = np.zeros((64, MIB), "float64")
    changes = data_changes(FitPlan.of({"x": wide}))
    found = {change.text: change.saved_bytes for change in changes}
    assert found["x is float64: Keras converts the whole array. Create it as float32."] == 256 * MIB


def test_small_data_need_no_change() -> None:
    small = FitPlan.of({"x": np.zeros((64, 100), "float64"), "y": np.zeros(64)})
    assert list(data_changes(small)) == []
