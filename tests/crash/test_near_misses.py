"""What looks like a cause and is none: never a wrong cause that is certain, and here none that is likely either."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.diagnosis.finding import Confidence
from tests.crash.near_misses import NEAR_MISSES
from tests.crash.near_records import RIGHT_ANSWERS, diagnosed
from tests.rigs.examples import EXAMPLES

if TYPE_CHECKING:
    from tests.crash.scene import Scene, Theatre

WRITTEN = sorted(RIGHT_ANSWERS)


@pytest.mark.skipif(sys.platform != "linux", reason="signals and cgroups of Linux")
@pytest.mark.parametrize("scene", NEAR_MISSES, ids=str)
def test_a_real_near_miss_gets_the_right_answer(theatre: Theatre, scene: Scene) -> None:
    played = theatre.played(scene)
    assert played.wrong_certain == [], played.printed
    assert played.right, played.printed
    assert scene.chip in ("", *(played.report or {}).get("chips", ()))


@pytest.mark.quick
@pytest.mark.parametrize("path", WRITTEN)
def test_a_written_near_miss_gets_the_right_answer(path: str) -> None:
    best = diagnosed(path).best
    assert best.cause in RIGHT_ANSWERS[path], best


@pytest.mark.quick
@pytest.mark.parametrize("path", WRITTEN)
def test_no_wrong_cause_of_a_written_near_miss_is_certain(path: str) -> None:
    found = diagnosed(path).findings
    sure = {finding.cause for finding in found if finding.confidence is Confidence.CERTAIN}
    assert sure <= set(RIGHT_ANSWERS[path])


@pytest.mark.quick
def test_there_are_enough_of_them() -> None:
    assert len({scene.name for scene in NEAR_MISSES}) == len(NEAR_MISSES) >= 30
    assert len(NEAR_MISSES) + len(RIGHT_ANSWERS) >= 60
    named = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/quiet-near-*")}
    assert named == set(RIGHT_ANSWERS)
