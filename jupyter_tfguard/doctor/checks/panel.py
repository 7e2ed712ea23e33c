"""Is the JupyterLab panel in place."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_core.paths import jupyter_path

from ..._version import __version__
from ...collectors.packages import find_package
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "JupyterLab panel"


def check(machine: Environment) -> CheckResult | None:
    """The prebuilt extension in the folders where JupyterLab looks."""
    if find_package("jupyter-tfguard", machine.import_folders) is None:
        return None  # Jupyter runs in another environment
    reinstall = machine.pip("install", "--force-reinstall", "--no-deps", "jupyter-tfguard")
    for folder in jupyter_path("labextensions"):
        package = Path(folder) / "jupyter-tfguard" / "package.json"
        try:
            version = json.loads(package.read_text(encoding="utf-8"))["version"]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError) as bad:
            return CheckResult(NAME, Status.PROBLEM, f"{package} cannot be read: {bad}", reinstall)
        if version != __version__:
            text = f"{package} is version {version}, the server part is {__version__}"
            return CheckResult(NAME, Status.WARNING, text, reinstall)
        return CheckResult(NAME, Status.OK, f"installed in {package.parent}")
    text = "it is in none of the folders where JupyterLab looks for extensions"
    return CheckResult(NAME, Status.PROBLEM, text, reinstall)
