"""Every example is reported as before. After an intended change: ``python -m tests.rigs.frozen_reports``, and read the diff."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.rigs.frozen_reports import FOLDER, frozen

pytestmark = pytest.mark.quick


@pytest.fixture
def same_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reports show local times."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("same_time_zone")
def test_reports_of_all_examples_are_as_before() -> None:
    made = frozen()
    assert {path.name for path in FOLDER.iterdir()} == set(made)
    for name, text in made.items():
        assert text.splitlines() == (FOLDER / name).read_text(encoding="utf-8").splitlines(), name
