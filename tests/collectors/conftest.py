"""Fixture: the process that reads the GPUs before a scenario."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rigs.nvml.reader import TICK_SECONDS, Reader
from tests.rigs.nvml.scenario import Scenario

Read = Callable[..., Reader]


@pytest.fixture
def read(standin: Path, tmp_path: Path) -> Iterator[Read]:
    """Starts the process that reads the GPUs before a scenario."""
    with contextlib.ExitStack() as stack:

        def start(
            scenario: Scenario, library: Path | None = None, seconds: float = TICK_SECONDS
        ) -> Reader:
            path = tmp_path / "scenario.txt"
            return stack.enter_context(Reader(library or standin, path, scenario, seconds))

        yield start
