"""The map in CONTRIBUTING.md names every module and room of the package, and the files of the advice exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jupyter_tfguard
from tests.rigs.documents import ROOT

pytestmark = pytest.mark.quick

PACKAGE = Path(jupyter_tfguard.__file__).parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BUILT = {"labextension", "static", "__pycache__"}


def section(title: str) -> str:
    """Text below a heading, up to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", TEXT, re.M | re.S)
    assert found is not None, title
    return found[2]


def test_the_map_names_every_module_and_room_and_nothing_else() -> None:
    package_part = (
        section("The map").partition("jupyter_tfguard/\n")[2].partition("\nlabextension/")[0]
    )
    rows = [
        line.strip().split("  ")[0].split()
        for line in package_part.splitlines()
        if re.match(r"  \S", line)
    ]
    named = {name.rstrip("/") for row in rows for name in row}
    there = {path.name for path in PACKAGE.iterdir()} - BUILT
    assert named == there


def test_the_map_names_the_rooms_of_the_tests() -> None:
    part = section("The map").partition("\ntests/ ")[2].partition("\nnotebooks/")[0]
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    extra = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and any(p.iterdir())}
    extra -= rooms | {"__pycache__"}
    assert {name for name in extra if f"{name}/" not in part} == set()


def test_files_of_the_advice_exist() -> None:
    for name in re.findall(r"`([\w./-]+\.(?:py|ts|tsx|toml|md))`", section("Add something")):
        assert any((folder / name).exists() for folder in (PACKAGE, ROOT)), name
