"""No part of ours speaks to anybody outside of this machine, from the start of the server to its end, a crash included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.demo.server import DemoServer
from tests.conftest import private_jupyter
from tests.rigs.waiting import wait_until

# Every Python process that finds this says that it watches, and writes down each address that is not on this machine.
GUARD = """
import os, sys

def _watch(event, arguments, _open=os.open, _write=os.write, _flags=os.O_WRONLY | os.O_CREAT | os.O_APPEND):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, (str, bytes)) or address is None:
            return
        host = str(address[0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"):
        host = str(arguments[0] or "").removeprefix("http://").split(":")[0].split("/")[0]
    else:
        return
    if host in ("", "localhost", "::1", "0.0.0.0", "::") or host.startswith("127."):
        return
    _write(_open(os.environ["NETWORK_LOG"], _flags, 0o600), f"{event} {arguments!r} {sys.argv!r}\\n".encode())

sys.addaudithook(_watch)
with open(os.environ["NETWORK_LOG"] + ".watching", "a") as log:
    log.write(f"{os.getpid()}\\n")
"""
KILL = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    found = tmp_path / "network.log"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "guard"))
    monkeypatch.setenv("NETWORK_LOG", str(found))
    return found


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; s = socket.socket(); s.settimeout(0.01); s.connect_ex(('192.0.2.1', 9))",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
        "import urllib.request; urllib.request.urlopen('http://nowhere.invalid/')",
    ],
)
def test_the_guard_sees_what_goes_out(log: Path, attempt: str) -> None:
    subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False, timeout=120)
    assert log.exists()


def test_a_whole_life_and_death_sends_nothing_out(log: Path, tmp_path: Path) -> None:
    with private_jupyter(tmp_path / "home", PYTHONPATH=tmp_path / "guard"):
        server = DemoServer(tmp_path / "notebooks", lab=False)
        try:
            session = server.start_session(server.write_notebook("dies", (KILL,)))
            kernel_id = session["kernel"]["id"]
            pid = _pid(server, kernel_id)
            os.kill(pid, signal.SIGKILL)
            report = wait_until(lambda: server.report_of(kernel_id))
            server.get(f"tfguard/api/crashes/{report['id']}")
            server.get("tfguard/api/status")
        finally:
            server.stop()
        for command in (("why",), ("list",), ("doctor",)):
            subprocess.run(
                [sys.executable, "-m", "jupyter_tfguard", *command],
                capture_output=True, check=False, timeout=120,
            )  # fmt: skip
    watching = log.with_name(log.name + ".watching").read_text().split()
    assert str(pid) in watching  # the kernel
    assert len(set(watching)) >= 5  # the server, the kernel and the next one, the commands
    assert not log.exists(), log.read_text()


def _pid(server: DemoServer, kernel_id: str) -> int:
    def found() -> int | None:
        kernels = server.get("tfguard/api/status")["kernels"]
        return next(
            (k["pid"] for k in kernels if k["kernel_id"] == kernel_id and k["guard"]["loaded"]),
            None,
        )

    return int(wait_until(found))
