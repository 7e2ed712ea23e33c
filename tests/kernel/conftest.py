"""One guarded kernel for the tests of a file, and a way to make others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel
from tests.kernel.widget_rig import until_idle


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


@pytest.fixture
def panel(kernel: GuardedKernel) -> Callable[[str], list[dict[str, Any]]]:
    """Runs code below a new panel, with no other there: what the kernel published meanwhile."""

    def run(code: str, arguments: str = "") -> list[dict[str, Any]]:
        kernel.run("%load_ext tfguard")
        return until_idle(kernel, kernel.send(f"%tfguard panel {arguments}\n{code}"))

    return run


@pytest.fixture
def reloaded(kernel: GuardedKernel) -> None:
    """The guard as it is when it was loaded just now."""
    kernel.run("%unload_ext tfguard")
    kernel.run("%load_ext tfguard")
