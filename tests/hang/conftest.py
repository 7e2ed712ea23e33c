"""A real Jupyter server that takes a kernel for hung after some seconds instead of minutes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import private_jupyter
from tests.crash.conftest import Kernel, RecordingServer
from tests.rigs.waiting import wait_until

HANG_SECONDS = 4.0


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingServer]:
    """One server for all kernels that stand still."""
    home = tmp_path_factory.mktemp("home")
    (home / "config").mkdir()
    settings = {"TfGuard": {"hang_seconds": HANG_SECONDS}}
    (home / "config" / "jupyter_tfguard_config.json").write_text(json.dumps(settings))
    with private_jupyter(home):
        found = RecordingServer(tmp_path_factory.mktemp("work"), home / "tfguard")
        yield found
        found.stop()


class WatchedKernel(Kernel):
    """One kernel, and what the panel is told of it."""

    def hang(self) -> dict[str, Any]:
        """What is told of its standstill, once it is."""
        hang: dict[str, Any] = wait_until(lambda: self.state().get("hang"), "the hang")
        return hang

    def wait_until_busy(self) -> None:
        """A cell was only sent so far: return when the server has seen that it runs."""
        wait_until(lambda: self.execution_state() == "busy", "a running cell")

    def execution_state(self) -> str:
        """As Jupyter's own route has it."""
        return str(self.server.get(f"api/kernels/{self.id}")["execution_state"])

    def restart(self) -> None:
        """As the restart button does it."""
        self.server.ask("POST", f"api/kernels/{self.id}/restart", {})

    def restart_and_forget(self) -> None:
        """Restart; return when the server has judged the end, and dropped the recording."""
        pid = self.pid
        self.restart()
        self.wait_until_forgotten(pid)


@pytest.fixture
def make_kernel(
    server: RecordingServer, request: pytest.FixtureRequest
) -> Iterator[Callable[[], WatchedKernel]]:
    """Kernels, ended after the test."""
    made: list[WatchedKernel] = []

    def make() -> WatchedKernel:
        name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:50]
        made.append(WatchedKernel(server, f"{name}-{len(made)}"))
        return made[-1]

    yield make
    for kernel in made:
        kernel.close()
