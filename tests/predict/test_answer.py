"""The answer of an estimate: its verdict, its text, its HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_tfguard.memory.limits import Limit, LimitKind
from jupyter_tfguard.predict.answer import Answer, Change, Grade, Verdict
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick

ANSWER = Answer(
    batch_size=64,
    grade=Grade.QUICK,
    low_bytes=2 * GIB,
    best_bytes=3 * GIB,
    high_bytes=4 * GIB,
    parts=(("activations", 2 * GIB), ("gradients", GIB)),
    available_bytes=5 * GIB,
    limit=Limit(8 * GIB, LimitKind.CGROUP),
    fitting_batch_size=80,
    changes=(Change("Use fewer units.", 300 * MIB),),
    notes=("Not seen inside: <lambda>.",),
)


@pytest.mark.parametrize(
    ("available", "verdict", "words"),
    [
        (5 * GIB, Verdict.FITS, "fits"),
        (3 * GIB, Verdict.TIGHT, "may not fit"),
        (GIB, Verdict.TOO_LARGE, "does not fit"),
    ],
)
def test_the_range_is_compared_with_the_available_memory(
    available: int, verdict: Verdict, words: str
) -> None:
    answer = replace(ANSWER, available_bytes=available)
    assert answer.verdict is verdict
    assert answer.text().startswith(f"batch_size=64 {words}: fit() needs about 3.00 GiB")


def test_of_a_lower_bound_only_too_large_is_certain() -> None:
    bound = replace(ANSWER, grade=Grade.BOUND, best_bytes=None, high_bytes=None)
    assert bound.verdict is Verdict.UNKNOWN
    assert "needs at least 2.00 GiB more memory" in bound.headline()
    assert replace(bound, available_bytes=GIB).verdict is Verdict.TOO_LARGE


def test_a_fit_that_fits_gets_no_advice_but_the_larger_batch() -> None:
    assert list(ANSWER.advice()) == ["The largest batch size that should fit is 80."]
    assert list(replace(ANSWER, fitting_batch_size=64).advice()) == []


def test_a_fit_that_does_not_fit_gets_changes_with_their_bytes() -> None:
    answer = replace(ANSWER, available_bytes=GIB, fitting_batch_size=16)
    assert list(answer.advice()) == [
        "The largest batch size that should fit is 16.",
        "Use fewer units. Saves about 300 MiB.",
    ]


def test_the_html_escapes_names_and_marks_the_available_memory() -> None:
    html = ANSWER._repr_html_()
    assert "&lt;lambda&gt;" in html
    assert "<lambda>" not in html
    assert 'title="activations: 2.00 GiB"' in html
    assert 'title="available: 5.00 GiB"' in html
