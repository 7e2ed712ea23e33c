"""The bench itself: it ran to its end, and where it cannot run it says what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import machine
from .machine import NoVirtualMachine

if TYPE_CHECKING:
    from tests.vm.conftest import Told
    from tests.vm.machine import Boot


def test_the_guest_came_to_its_end_on_an_older_os_kernel(boot: Boot, told: Told) -> None:
    assert told("end")["uptime"] > told("boot")["uptime"]
    assert not boot.timed_out
    print({line["scenario"]: line.get("seconds") for line in boot.lines}, boot.seconds)
    # Before PIDFD_GET_INFO (Linux 6.15) the exit status must come from elsewhere, and it did.
    major, minor = (int(part) for part in told("boot")["os_kernel"].split(".")[:2])
    assert (major, minor) < (6, 15)
    for name in ("own limit", "ancestor limit", "hidden log", "host", "neighbour"):
        assert told(name)["server"]["exit"]["signal"] == "SIGKILL", name


@pytest.mark.quick
def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoVirtualMachine, match="package user-mode-linux"):
        machine.boot(tmp_path, "unused", silence_seconds=1)
