"""A kernel that the server's culler shuts down is reported, because its user did not ask for that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.conftest import private_jupyter
from tests.crash.conftest import Kernel, RecordingServer

CULLING = {
    "cull_idle_timeout": 8,
    "cull_interval": 1,
    "cull_busy": True,
    "cull_connected": True,
}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingServer]:
    """A server that culls after eight seconds, also what is busy."""
    home = tmp_path_factory.mktemp("home")
    (home / "config").mkdir()
    settings = json.dumps({"MappingKernelManager": CULLING})
    (home / "config" / "jupyter_server_config.json").write_text(settings)
    with private_jupyter(home):
        found = RecordingServer(tmp_path_factory.mktemp("work"), home / "tfguard")
        yield found
        found.stop()


def test_a_culled_kernel_is_reported_with_the_options_that_ended_it(
    server: RecordingServer,
) -> None:
    kernel = Kernel(server, "culled")
    kernel.start("import time\nfor second in range(600): time.sleep(1)")
    report = kernel.report()
    kernel.client.stop_channels()
    assert report["cause"] == "culled"
    assert report["confidence"] == "certain"
    assert "in the middle of cell [1]" in report["title"]
    said = json.dumps(report)
    assert "cull_idle_timeout: 8" in said
    assert "cull_busy" in said
