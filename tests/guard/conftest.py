"""A guarded kernel in a memory group of its own: what fills it can end nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.demo.limits import NoLimitPossible, make_limit
from tests.kernel.rig import GuardedKernel

Make = Callable[..., GuardedKernel]


@pytest.fixture(scope="module")
def limited_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Makes kernels that the tests of a file share, each with a memory limit in MiB."""
    made, limits = [], []

    def make(limit_mib: int, stop: str = "soft") -> GuardedKernel:
        try:
            limit = make_limit(limit_mib << 20)
        except NoLimitPossible as no:
            pytest.skip(f"no memory limit can be set here: {no}")
        limits.append(limit)
        folder = tmp_path_factory.mktemp("limited")
        write_options(folder / "config", stop)
        kernel = GuardedKernel(folder).start()
        made.append(kernel)
        limit.add(kernel.pid)
        return kernel

    yield make
    for kernel in made:
        kernel.close()
    for limit in limits:
        limit.remove()


def write_options(folder: Path, stop: str) -> None:
    """The user's file of options."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"TfGuard": {"stop": stop}})
    (folder / "jupyter_tfguard_config.json").write_text(content)
