"""The header of this kernel's recording: facts known at the start, and facts that change while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from .._version import __version__
from ..collectors.cgroup import CgroupCollector
from ..collectors.ulimits import thread_limits
from ..places import KERNEL_VARIABLE, WATCHER_VARIABLE
from ..procfs import read_small
from ..record.identity import ProcessIdentity
from ..record.recording import Recording

_COMMAND_CHARACTERS = 500
# Set by jupyter_client to the process that starts a kernel; on Windows it is a handle.
_STARTER_VARIABLE = "JPY_PARENT_PID"
_KERNEL_ID = re.compile(r"kernel-(.+)\.json")
# Versions are read once these are imported; nothing is imported to read them.
_LIBRARIES = ("tensorflow", "keras", "tf_keras", "numpy")


def kernel_header(shell: Any) -> dict[str, Any]:
    """The header fields known at kernel start; None for unknown values."""
    connection = _connection_file(shell)
    return {
        "kernel_id": kernel_id(connection),
        "notebook_path": None if _is_inherited() else os.environ.get("JPY_SESSION_NAME") or None,
        "kernel_name": _kernel_name(connection),
        "parent_pid": os.getppid(),
        "starter_command": _starter_command(),
        "watcher_pid": watcher_pid(),
        "prefix": sys.prefix,
        "thread_limits": thread_limits(),
        "versions": {
            "python": platform.python_version(),
            "ipython": _module_version("IPython"),
            "ipykernel": _module_version("ipykernel"),
            "jupyter_tfguard": __version__,
        },
    }


def _connection_file(shell: Any) -> Path | None:
    application = getattr(shell.kernel, "parent", None)
    name = getattr(application, "abs_connection_file", None) or getattr(
        application, "connection_file", None
    )
    return Path(name) if isinstance(name, str) and name else None


def kernel_id(connection: Path | None) -> str | None:
    """The kernel id assigned by the Jupyter server, from the name of the connection file."""
    match = _KERNEL_ID.fullmatch(connection.name) if connection is not None else None
    return match[1] if match else None


def _kernel_name(connection: Path | None) -> str | None:
    if connection is not None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            name = json.loads(connection.read_text(encoding="utf-8")).get("kernel_name")
            return str(name) if name else None
    return None


def _is_inherited() -> bool:
    """True if the environment is that of another guarded kernel, as with ``!papermill x.ipynb`` in a cell."""
    return os.environ.get(KERNEL_VARIABLE, str(os.getpid())) != str(os.getpid())


def _starter_command() -> str | None:
    """The command line of the process that started this kernel; without a server it may name the notebook."""
    try:
        command = read_small(f"/proc/{os.getppid()}/cmdline").decode("utf-8", "replace")
    except OSError:
        return None
    return command.replace("\0", " ").strip()[:_COMMAND_CHARACTERS] or None


def watcher_pid() -> int | None:
    """Process id, from the environment, of the server whose watcher tracks this kernel.

    Programs in a terminal of the server inherit its environment too; no server tracks the kernels that they start.
    """
    text = "" if _is_inherited() else os.environ.get(WATCHER_VARIABLE, "")
    if sys.platform != "win32" and os.environ.get(_STARTER_VARIABLE, text) != text:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def watcher_alive() -> bool:
    """True while that server is running."""
    pid = watcher_pid()
    identity = None if pid is None else ProcessIdentity.of(pid)
    return identity is not None and identity.is_running()


def is_watched() -> bool:
    """True if that server runs and started this kernel itself. It tracks only the starter of another kernel."""
    return os.getppid() == watcher_pid() and watcher_alive()


def library_versions(just_imported: str | None = None) -> dict[str, str]:
    """Versions of the libraries named in reports that are imported now.

    Args:
        just_imported: The module whose import triggered this call: complete, though Python still marks it as
            initializing.
    """
    found = {}
    for name in _LIBRARIES:
        module = sys.modules.get(name)
        if module is None or (name != just_imported and is_being_imported(module)):
            continue
        version = _module_version(name)
        if version is not None:
            found[name] = version
    return found


def is_being_imported(module: ModuleType) -> bool:
    """True while the module's code is still being executed."""
    return bool(getattr(vars(module).get("__spec__"), "_initializing", False))


def _module_version(name: str) -> str | None:
    """``__version__`` of the loaded module, otherwise the installed version; nothing is imported."""
    version = vars(sys.modules[name]).get("__version__") if name in sys.modules else None
    if isinstance(version, str):
        return version
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


class HeaderKeeper:
    """Writes facts that change while the kernel runs into the header; does nothing without a recording.

    Args:
        recording: Returns the current recording.
    """

    def __init__(self, recording: Callable[[], Recording | None]) -> None:
        self._recording = recording
        self._starter_pid = os.getppid()
        self._starter_is_gone = False

    def claim_environment(self) -> None:
        """Mark the environment variables as belonging to this kernel, unless they were inherited from another kernel."""
        os.environ.setdefault(KERNEL_VARIABLE, str(os.getpid()))

    def release_environment(self) -> None:
        """Undo :meth:`claim_environment`."""
        if not _is_inherited():
            os.environ.pop(KERNEL_VARIABLE, None)

    def write(self, fields: dict[str, Any]) -> None:
        """Write fields into the header."""
        recording = self._recording()
        if recording is not None:
            recording.write_header(fields)

    def versions(self, just_imported: str | None = None) -> None:
        """Record the versions of newly imported libraries.

        Args:
            just_imported: The module whose import triggered this call.
        """
        recording = self._recording()
        if recording is None:
            return
        versions = recording.header["versions"] | library_versions(just_imported)
        if versions != recording.header["versions"]:
            recording.write_header({"versions": versions})

    def memory_group(self, cgroup: CgroupCollector | None) -> None:
        """Record the cgroup of this kernel: after a crash it cannot be found out otherwise."""
        recording = self._recording()
        if cgroup is None or recording is None:
            return
        own, binding = cgroup.groups[0], cgroup.binding
        group = {"path": own.path, "version": own.version, "limited_by": binding.path}
        if recording.header.get("memory_group") != group:
            recording.write_header({"memory_group": group})

    def starter(self) -> None:
        """Record once that the parent process has ended: a kernel that ended earlier did not end because of that."""
        if not self._starter_is_gone and os.getppid() != self._starter_pid:
            self._starter_is_gone = True
            self.write({"starter_gone": time.time()})
