"""Another program takes a port of a kernel between the server's choice and the kernel's start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.crash.conftest import Kernel, RecordingServer
from tests.crash.settings import write_setting
from tests.rigs.waiting import wait_until

# The first process of the kernel holds the port itself: it is free again when that process ends.
START = """\
import json, os, socket, sys
connection, port, first = sys.argv[1:]
if not os.path.exists(first):
    open(first, "w").close()
    taken = socket.create_server(("127.0.0.1", json.load(open(connection))[port]))
    taken.set_inheritable(True)
os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", "-f", connection])
"""


@pytest.mark.parametrize("port", ["shell_port", "hb_port"])
def test_a_client_reaches_the_kernel(server: RecordingServer, tmp_path: Path, port: str) -> None:
    start, first = tmp_path / "start.py", tmp_path / "first"
    start.write_text(START)
    name = f"taken-{port}".replace("_", "-")
    kernels = Path(os.environ["JUPYTER_DATA_DIR"]) / "kernels"
    argv = [sys.executable, str(start), "{connection_file}", port, str(first)]
    write_setting(kernels, name, argv)
    kernel = Kernel(server, name, name)
    assert kernel.run("1")["status"] == "ok"
    if port == "shell_port":
        wait_until(kernel.entries, "the report of its first process")
    kernel.close()
