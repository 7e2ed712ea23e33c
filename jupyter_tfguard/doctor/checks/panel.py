"""Is the JupyterLab panel in place."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jupyter_core.paths import jupyter_path

from ..._version import __version__
from ..check import CheckResult, Status

NAME = "JupyterLab panel"
_REINSTALL = f"{sys.executable} -m pip install --force-reinstall --no-deps jupyter-tfguard"


def check() -> CheckResult:
    """The prebuilt extension in the folders where JupyterLab looks."""
    for folder in jupyter_path("labextensions"):
        package = Path(folder) / "jupyter-tfguard" / "package.json"
        try:
            version = json.loads(package.read_text(encoding="utf-8"))["version"]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError) as bad:
            return CheckResult(NAME, Status.PROBLEM, f"{package} cannot be read: {bad}", _REINSTALL)
        if version != __version__:
            text = f"{package} is version {version}, the server part is {__version__}"
            return CheckResult(NAME, Status.WARNING, text, _REINSTALL)
        return CheckResult(NAME, Status.OK, f"installed in {package.parent}")
    text = "it is in none of the folders where JupyterLab looks for extensions"
    return CheckResult(NAME, Status.PROBLEM, text, _REINSTALL)
