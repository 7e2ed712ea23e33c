"""A guarded kernel in a memory group of its own: what fills it can end nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import write_options
from tests.crash.conftest import needed_limit
from tests.kernel.rig import GuardedKernel, guarded_kernel

Make = Callable[..., GuardedKernel]
LIMIT_MIB = 600
STOPPED = "HostMemoryLimitReached"


@pytest.fixture(scope="module")
def limited_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Makes kernels that the tests of a file share, each with a memory limit in MiB."""
    with contextlib.ExitStack() as made:

        def make(limit_mib: int, stop: str = "soft") -> GuardedKernel:
            limit = made.enter_context(needed_limit(limit_mib << 20))
            folder = tmp_path_factory.mktemp("limited")
            write_options(folder / "config", stop)
            kernel = made.enter_context(guarded_kernel(folder))
            kernel.hold_stderr()
            limit.add(kernel.pid)
            return kernel

        yield make


@pytest.fixture(scope="module")
def kernel(limited_kernel: Make) -> GuardedKernel:
    """A kernel of LIMIT_MIB with a function that returns blocks of 1 MB, from a slow source: a fast fill is the sampler's part."""
    shared = limited_kernel(LIMIT_MIB)
    shared.run(
        "import numpy as np, time\n"
        "def block():\n    time.sleep(0.004)\n    return np.ones(125_000)\n"
    )
    return shared


@pytest.fixture
def leave_it_empty(kernel: GuardedKernel) -> Iterator[None]:
    """Empties what the tests fill."""
    yield
    ran = kernel.run("kept = kept2 = None\nblock().sum()")
    assert ran.result == "np.float64(125000.0)", ran
