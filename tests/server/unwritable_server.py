"""Run by a test without the right to override permissions: a server whose data folder cannot be made, and a kernel that dies in it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.rigs.waiting import wait_until

closed = Path(sys.argv[1])
try:
    (closed / "plain").write_text("x")
    refused = False
except PermissionError:
    refused = True

TOKEN = "a-token-of-this-test"
server = subprocess.Popen(
    [
        sys.executable,
        "-m",
        "jupyter_server",
        "--no-browser",
        "--allow-root",
        "--port=0",
        "--ServerApp.ip=127.0.0.1",
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.jpserver_extensions={'jupyter_tfguard': True}",
    ],
    stdout=subprocess.DEVNULL,
)


def running() -> dict:
    listed = subprocess.run(
        [sys.executable, "-m", "jupyter_server", "list", "--json"], capture_output=True, text=True
    )
    return json.loads(listed.stdout.splitlines()[0]) if listed.stdout.strip() else {}


def call(path: str, method: str = "GET") -> dict:
    request = urllib.request.Request(
        url + path,
        method=method,
        headers={"Authorization": f"token {TOKEN}"},
        data=b"{}" if method == "POST" else None,
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


try:
    url = wait_until(lambda: running().get("url"))
    kernel = call("api/kernels", "POST")["id"]

    def pid() -> int | None:
        kernels = call("tfguard/api/status")["kernels"]
        return next((k["pid"] for k in kernels if k["kernel_id"] == kernel), None)

    first = wait_until(pid)
    time.sleep(1)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: pid() not in (None, first))
    told = {
        "plain_write_refused": refused,
        "restarted": True,
        "crashes": call("tfguard/api/crashes")["crashes"],
        "problems": call("tfguard/api/status")["problems"],
    }
    print(told)
finally:
    server.terminate()
    server.wait(20)
