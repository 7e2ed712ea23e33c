"""Is the server part switched on: the watcher, the reports, the panel's data."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_core.paths import jupyter_config_path

from ...collectors.packages import find_package
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "server part (watcher)"


def check(machine: Environment) -> CheckResult | None:
    """The configuration folders that Jupyter Server reads, nearest first; the first file that names us decides."""
    if find_package("jupyter-tfguard", machine.import_folders) is None:
        return None  # Jupyter runs in another environment
    enabled = None
    for folder in jupyter_config_path():
        for path in sorted(Path(folder).glob("jupyter_server_config.d/*.json")):
            switch = _switch(path)
            if switch is not None and enabled is None:
                enabled, where = switch, path
    if enabled:
        return CheckResult(NAME, Status.OK, f"enabled by {where}")
    fix = f"{machine.python} -m jupyter server extension enable jupyter_tfguard"
    if enabled is None:
        return CheckResult(NAME, Status.PROBLEM, "no configuration file enables it", fix)
    return CheckResult(NAME, Status.PROBLEM, f"disabled by {where}", fix)


def _switch(path: Path) -> bool | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        switch = found["ServerApp"]["jpserver_extensions"].get("jupyter_tfguard")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if switch is None else bool(switch)
