"""One guarded kernel for the tests of a file, and a way to make others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A guarded kernel that the tests of one file share; they leave it alive."""
    shared = GuardedKernel(tmp_path_factory.mktemp("kernel")).start()
    yield shared
    shared.close()


@pytest.fixture
def new_kernel(tmp_path: Path) -> Iterator[Callable[..., GuardedKernel]]:
    """Makes kernels for one test; a second one shares the folders of the first."""
    made: list[GuardedKernel] = []

    def make(**how: Any) -> GuardedKernel:
        fresh = GuardedKernel(tmp_path, **how)
        made.append(fresh)
        return fresh.start()

    yield make
    for old in made:
        old.close()
