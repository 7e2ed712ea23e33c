"""Finds the switch and the folders of a kernel that a kernel gateway has started with an environment of its own.

jupyter_kernel_gateway gives a kernel only ``PATH`` and ``KERNEL_*`` if the request has an ``env``, and JupyterLab's always
has. So ``TFGUARD_DISABLE`` had no effect, and reports were saved where ``jupyter tfguard why`` does not search. The gateway
is the parent process, and its environment has the values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import SourceUnavailable
from ..places import DIRECTORY_VARIABLE, DISABLE_VARIABLE, LIVE_VARIABLE, data_folder
from ..procfs import read_environ

_MARK = "KERNEL_GATEWAY"  # "1" in each kernel of a gateway
_CONFIG_VARIABLE = "JUPYTER_CONFIG_DIR"
_NAMES = (DISABLE_VARIABLE, DIRECTORY_VARIABLE, LIVE_VARIABLE, _CONFIG_VARIABLE)
_added: list[str] = []


def adopt_environment() -> None:
    """Set the variables that the gateway left out; nothing in other kernels, or if the gateway is another user's."""
    if os.environ.get(_MARK) != "1":
        return
    try:
        gateway = read_environ(f"/proc/{os.getppid()}/environ")
    except SourceUnavailable:
        return
    found = {name: gateway[name] for name in _NAMES if gateway.get(name)}
    if (home := gateway.get("HOME")) and home != os.environ.get("HOME"):
        found.setdefault(_CONFIG_VARIABLE, str(Path(home, ".jupyter")))
    for name, value in found.items():
        _add(name, value)
    if (folder := _data_folder(gateway)) is not None and folder != data_folder():
        _add(DIRECTORY_VARIABLE, str(folder))


def release_environment() -> None:
    """Undo :func:`adopt_environment`."""
    while _added:
        os.environ.pop(_added.pop(), None)


def _add(name: str, value: str) -> None:
    if name not in os.environ:
        os.environ[name] = value
        _added.append(name)


def _data_folder(gateway: Mapping[str, str]) -> Path | None:
    """The gateway's own, as in :func:`~..places.data_folder`; None if its environment does not name one."""
    if jupyter := gateway.get("JUPYTER_DATA_DIR"):
        return Path(jupyter, "tfguard")
    if share := gateway.get("XDG_DATA_HOME"):
        return Path(share, "jupyter", "tfguard")
    home = gateway.get("HOME")
    return Path(home, ".local", "share", "jupyter", "tfguard") if home else None
