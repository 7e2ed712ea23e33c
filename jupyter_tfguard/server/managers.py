"""What a kernel manager of any kind gives: process, return code, state, language.

Only :func:`recorded_process` reads files.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from jupyter_client.provisioning import LocalProvisioner

from ..places import recordings_folder
from ..record.alive import Place
from ..record.contents import recording_header
from ..record.identity import ProcessIdentity
from .state import REMOTE, STARTING

_PROVISIONER_WAIT_SECONDS = 3.0


def process_of(manager: Any, known_seconds: float) -> tuple[int | None, str | None]:
    """Process id of the kernel; without one, why it cannot be watched here.

    Args:
        manager: Of the kernel.
        known_seconds: For how long this manager is known.
    """
    provisioner = getattr(manager, "provisioner", None)
    pid = getattr(provisioner, "pid", None)
    process = getattr(provisioner, "process", None)
    if isinstance(pid, int) and pid > 0:
        # A provisioner of another kind may give the id of a process on another machine.
        if isinstance(provisioner, LocalProvisioner) or getattr(process, "pid", None) == pid:
            return pid, None
        return None, REMOTE
    return None, STARTING if known_seconds < _PROVISIONER_WAIT_SECONDS else REMOTE


def recorded_process(kernel_id: str) -> int | None:
    """Process id of a kernel of this server whose manager names no process; None where no such kernel runs here.

    Its own recording names the kernel and the server, and says that it is of this machine.
    """
    root, here = recordings_folder(), Place.here()
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(root)
    for name in names:
        identity = ProcessIdentity.from_folder_name(name)
        if identity is None or not identity.is_running():
            continue
        header = recording_header(root / name)
        if Place.of(header) != here or header.get("watcher_pid") != os.getpid():
            continue
        if header.get("kernel_id") == kernel_id:
            return identity.pid
    return None


def returncode(manager: Any, pid: int) -> int | None:
    """What the kernel's starter knows of its end. Popen keeps it, so nobody who asks later misses it."""
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    if process is None or getattr(process, "pid", None) != pid:
        return None
    found = process.poll()
    return found if isinstance(found, int) else None


def execution_state(manager: Any) -> str:
    """As the manager tells it; "unknown" where it does not."""
    state = getattr(manager, "execution_state", None)
    return state if isinstance(state, str) and state else "unknown"


def language(manager: Any) -> str | None:
    """Of the kernel's code; None where it is not known."""
    # The specification as it was loaded to start the kernel; asking for `kernel_spec` could read files.
    found = getattr(getattr(manager, "_kernel_spec", None), "language", None)
    return found if isinstance(found, str) and found else None


def command(manager: Any) -> tuple[str, ...] | None:
    """What the kernel's specification starts; None where it is not known."""
    found = getattr(getattr(manager, "_kernel_spec", None), "argv", None)
    return tuple(map(str, found)) if isinstance(found, list) and found else None
