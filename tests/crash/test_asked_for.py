"""What was asked for makes no report: restart, shutdown, interrupt, an error in a cell."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from tests.crash.conftest import Kernel


def post(kernel: Kernel, action: str) -> None:
    server = kernel.server
    request = urllib.request.Request(f"{server.url}api/kernels/{kernel.id}/{action}", method="POST")
    request.add_header("Authorization", f"token {server.token}")
    with urllib.request.urlopen(request, b"", timeout=120) as answer:
        json.loads(answer.read() or b"null")


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_restart_makes_no_report(kernel: Kernel, busy: bool) -> None:
    first = kernel.pid
    if busy:
        kernel.sleep()
    post(kernel, "restart")
    wait_until(lambda: kernel.server.kernel_pid(kernel.id) not in (None, first))
    kernel.wait_until_forgotten(first)
    assert kernel.entries() == []


def test_an_interrupt_makes_no_report(kernel: Kernel) -> None:
    kernel.sleep()
    post(kernel, "interrupt")
    # What was sent while a cell failed is not run.
    wait_until(lambda: kernel.run("1 + 1")["status"] == "ok", "a cell that runs")
    assert kernel.entries() == []


def test_a_shutdown_makes_no_report_and_leaves_no_recording(kernel: Kernel) -> None:
    pid = kernel.pid
    kernel.run("x = 1")
    kernel.server.end_session(kernel.session)
    kernel.wait_until_forgotten(pid)
    assert kernel.entries() == []


def test_an_error_in_a_cell_makes_no_report(kernel: Kernel) -> None:
    assert kernel.run("import sys; sys.exit(5)")["status"] in ("error", "ok")
    assert kernel.run("1/0")["status"] == "error"
    assert kernel.entries() == []
