"""How the tests run side by side: how many processes, which tests share one, which begin first, what each has for itself."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.rigs.network import enter_own_network

# Most tests wait for a kernel, a server or a page: more processes than cores. The quick ones compute.
_PROCESSES, _QUICK_PROCESSES = 6, 2
# The slowest rooms begin first, so that the last minute is left to short tests. All others follow in their usual order.
_FIRST = (
    "vm",
    "crash",
    "browser",
    "guides",
    "predict",
    "hang",
    "test_frontend.py",
    "server",
    "cli",
)
# Files whose tests share nothing and take long: each test may run in another process.
_SPREAD = (
    "tests/browser/test_gpu_panel.py",
    "tests/browser/test_near_limit.py",
    "tests/browser/test_reconnect.py",
    "tests/cli/test_enabled_kernels.py",
    "tests/crash/test_gpu_deaths.py",
    "tests/crash/test_remote_home.py",
    "tests/crash/test_torn_checkpoint.py",
    "tests/test_frontend.py",
)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """None but this process for files that are named; ``-n 0`` or another number decides otherwise."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return 0
    return _QUICK_PROCESSES if config.option.markexpr == "quick" else _PROCESSES


def pytest_configure(config: pytest.Config) -> None:
    """Give each process of pytest-xdist a loopback network of its own, where that is permitted.

    jupyter_client chooses the ports of a kernel some time before the kernel binds them. Two servers that start kernels at the
    same moment can choose the same port: a rare accident for users, a failure now and then here.
    """
    if hasattr(config, "workerinput") and hasattr(os, "geteuid") and os.geteuid() == 0:
        with contextlib.suppress(OSError, AttributeError):
            enter_own_network()


class Scheduler(LoadScopeScheduling):
    """Gives a process the tests of a file; of a file of independent long tests, one; the virtual machine's as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path.startswith("tests/vm/"):
            return "tests/vm"  # one boot for all
        return nodeid if path in _SPREAD else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Distribute by files."""
    return Scheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        parts = item.location[0].split("/")
        room = parts[1] if len(parts) > 1 else ""
        first = _FIRST.index(room) if room in _FIRST else len(_FIRST)
        return item.get_closest_marker("quick") is not None, first

    items.sort(key=place)
