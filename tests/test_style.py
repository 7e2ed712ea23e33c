"""Formatters, linters and type checkers are clean; versions and names that must agree do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfguard import __version__

ROOT = Path(__file__).parents[1]


def run(*command: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"


@pytest.mark.quick
def test_ruff_formats_and_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "format", "--check", ".")
    run(sys.executable, "-m", "ruff", "check", ".")


def test_mypy_is_content() -> None:
    run(sys.executable, "-m", "mypy")


@pytest.mark.quick
def test_front_end_and_python_have_one_version() -> None:
    package = json.loads((ROOT / "labextension/package.json").read_text())
    assert package["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.quick
def test_every_option_is_told_with_help() -> None:
    from jupyter_tfguard.config import TfGuard

    for name, trait in TfGuard.class_own_traits(config=True).items():
        assert trait.help, name


@pytest.mark.quick
def test_readme_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in set(re.findall(r"jupyter tfguard (\w+)", readme)):
        assert (ROOT / f"jupyter_tfguard/cli/{command}.py").is_file(), command
