"""One boot of the guest for all tests here; each looks at what was told of its scenario."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from . import machine
from .machine import Boot, NoVirtualMachine

SILENCE_SECONDS = 600.0

Told = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def boot(tmp_path_factory: pytest.TempPathFactory) -> Boot:
    """What the guest told. Skipped where no guest can be booted; in CI that is a failure."""
    try:
        folder = tmp_path_factory.mktemp("vm")
        return machine.boot(folder, "tests.vm.guest_deaths", silence_seconds=SILENCE_SECONDS)
    except NoVirtualMachine as no:
        if os.environ.get("CI"):
            pytest.fail(f"no virtual machine can be started here: {no}")
        pytest.skip(f"no virtual machine can be started here: {no}")


@pytest.fixture(scope="session")
def told(boot: Boot) -> Told:
    """What was told of a scenario that came to its end."""
    lines = {line["scenario"]: line for line in boot.lines}

    def find(name: str) -> dict[str, Any]:
        line = lines.get(name)
        if line is None:
            how = "was ended after a long silence" if boot.timed_out else "ended"
            pytest.fail(f"the guest {how} before {name!r}. Its console ends:\n{boot.console}")
        if not line["ok"]:
            pytest.fail(f"{name!r} broke off in the guest:\n{line['log']}")
        return line

    return find
