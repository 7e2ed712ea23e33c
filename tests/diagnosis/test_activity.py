"""What a kernel was doing when it died: a training loop of the user's is training."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.activity import last_fit, where
from jupyter_tfguard.diagnosis.observed import Observed
from jupyter_tfguard.report.wire import _activity

pytestmark = pytest.mark.quick

CELL = {"kind": "cell_start", "execution_count": 12, "head": "train()", "t": 1.0}
LOOP = {"kind": "fit_start", "fit_id": 4, "what": "loop", "optimizer": "Adam", "t": 2.0}
INSIDE = {"kind": "fit_start", "fit_id": 5, "what": "evaluate", "model_name": "tiny", "t": 3.0}


def seen(*events: dict[str, Any], **progress: Any) -> Any:
    return Observed(
        {
            "identity": {"died": 9.0},
            "kernel": {"header": {}, "events": list(events), "progress": progress or None},
        }
    )


def test_a_training_loop_is_named_with_its_step() -> None:
    died = seen(CELL, LOOP, fit_id=4, what="loop", step=974)
    assert where(died) == "cell [12] · training loop, step 974"
    rows = [(row["label"], row["value"]) for row in _activity(died)]
    assert ("training", "training loop, Adam") in rows
    assert ("position", "step 974") in rows


def test_a_loop_without_a_number_of_steps_has_no_position() -> None:
    died = seen(CELL, LOOP, fit_id=4, what="loop", step=None)
    assert where(died) == "cell [12] · training loop"
    assert "position" not in [row["label"] for row in _activity(died)]


def test_an_evaluation_in_a_loop_does_not_end_the_loop() -> None:
    inside = last_fit(seen(CELL, LOOP, INSIDE))
    assert inside is not None
    assert inside.what == "evaluate"
    after = last_fit(seen(CELL, LOOP, INSIDE, {"kind": "fit_end", "fit_id": 5}))
    assert after is not None
    assert after.what == "loop"
    assert last_fit(seen(CELL, LOOP, {"kind": "fit_end", "fit_id": 4})) is None
