"""Starts the server of a replay, with every folder of its own, and ends it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyter_core.paths import jupyter_path

from ..demo.server import DemoServer
from ..places import DIRECTORY_VARIABLE, DISABLE_VARIABLE
from ..record.bundle import BUNDLE, is_bundle_id
from ..record.folders import PrivateFolder
from ..report.wire import utc_text
from ..units import human_seconds
from .kernel_name import KERNEL_NAME
from .notebook import notebook_of
from .tape import Tape


@dataclass(frozen=True)
class Replay:
    """A replay that is ready to be looked at.

    Attributes:
        address: To be opened in a browser; holds the key to the server.
        kernel_id: Of the kernel that stands for the recorded one.
        notebook: Its file, relative to the server's folder.
        seconds: From the beginning to the death, at the chosen speed.
    """

    address: str
    kernel_id: str
    notebook: str
    seconds: float


@contextlib.contextmanager
def playing(
    tape: Tape, *, speed: float = 1.0, before_seconds: float = 120.0, loop: bool = False
) -> Iterator[tuple[DemoServer, Replay]]:
    """A JupyterLab that plays the tape, until the end of the block.

    Raises:
        TfGuardError: The server does not come up.
    """
    home = Path(tempfile.mkdtemp(prefix="tfguard-replay-"))
    server = None
    try:
        work = home / "work"
        work.mkdir()
        options = {"speed": speed, "before_seconds": before_seconds, "loop": loop}
        environment = _prepare(home, tape, options)
        server = DemoServer(work, lab=True, more=environment)
        name = tape.notebook
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(json.dumps(notebook_of(tape)))
        (work / name).chmod(0o444)
        session = server.start_session(work / name, KERNEL_NAME)
        begins = max(tape.first, tape.end - before_seconds)
        yield (
            server,
            Replay(
                address=f"{server.url}lab/tree/{quote(name)}?token={server.token}",
                kernel_id=str(session["kernel"]["id"]),
                notebook=name,
                seconds=(tape.end - begins) / speed,
            ),
        )
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(home, ignore_errors=True)


def _prepare(home: Path, tape: Tape, options: dict[str, Any]) -> dict[str, str]:
    """Write what the server reads at its start; its environment."""
    with PrivateFolder(home / "recorded") as folder:
        folder.write_whole(BUNDLE, json.dumps(tape.bundle).encode())
    config = home / "config"
    extensions = {"jupyter_tfguard": False, "jupyter_tfguard.replay": True}
    _write(
        config / "jupyter_server_config.json",
        {
            "ServerApp": {"jpserver_extensions": extensions},
            "ReplayExtension": options | {"folder": str(home / "recorded")},
            "LabApp": {"expose_app_in_browser": True},
        },
    )
    _write(
        home / "data" / "kernels" / KERNEL_NAME / "kernel.json",
        {
            "argv": [
                *(sys.executable, "-m", "jupyter_tfguard.replay.kernel"),
                *("-f", "{connection_file}"),
            ],
            "display_name": "Replay",
            "language": "python",
        },
    )
    # Its news would lie over the notice of a death.
    notices = home / "settings" / "@jupyterlab" / "apputils-extension"
    _write(notices / "notification.jupyterlab-settings", {"fetchNews": "false"})
    return {
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTER_DATA_DIR": str(home / "data"),
        # The panel may be installed in the user's own data folder.
        "JUPYTER_PATH": os.pathsep.join(jupyter_path()),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        DIRECTORY_VARIABLE: str(home / "tfguard"),
        DISABLE_VARIABLE: "",
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def run(
    tape: Tape,
    *,
    speed: float,
    before_seconds: float,
    loop: bool,
    browser: bool,
    as_json: bool,
) -> int:
    """Play until Ctrl-C.

    Args:
        tape: The recording.
        speed, before_seconds, loop: As :func:`playing`.
        browser: Open a browser.
        as_json: Print :class:`Replay` as one line of JSON, and nothing else.

    Returns:
        0.
    """
    # Ended from outside, the server must not stay behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if not as_json:
        print(headline(tape), flush=True)
    with playing(tape, speed=speed, before_seconds=before_seconds, loop=loop) as (server, replay):
        if as_json:
            print(json.dumps(asdict(replay)), flush=True)
        else:
            span = human_seconds(replay.seconds)
            print(
                f"It begins when the page is open, and the death comes {span} later.\n\n"
                f"    {replay.address}\n\nCtrl-C ends it.",
                flush=True,
            )
        if browser:
            webbrowser.open(replay.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.process.wait()
    return 0


def headline(tape: Tape) -> str:
    """What is played. Nothing of a stranger's text is in it: it goes to the terminal."""
    died = utc_text(math.floor(tape.end)).partition(".")[0].replace("T", " ")
    told = tape.bundle.get("id")
    named = told if is_bundle_id(told) else "a recording"
    samples = f"{len(tape.samples):,} samples" if tape.samples else "no samples of memory"
    return (
        f"Replay of {named}: {tape.notebook}, died {died} UTC. "
        f"Recorded were {samples} and {len(tape.events):,} events."
    )
