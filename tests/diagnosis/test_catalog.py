"""The tables of outside facts: every row says where it was read, and no unverified one decides alone."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import jupyter_tfguard
from jupyter_tfguard.diagnosis.catalog import table
from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.rule import all_rules
from jupyter_tfguard.diagnosis.signs import message_rows

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.quick

IDENTITY = ("id", "version", "series", "status", "xid", "name", "file", "cuda", "text", "first", "builds")  # fmt: skip
BESIDE = ("platform", "cuda_major")
CHECKS = ("measured", "read", "secondary", "unverified")
TABLES = sorted(
    entry.name.removesuffix(".toml")
    for entry in resources.files("jupyter_tfguard.diagnosis.catalog").iterdir()
    if entry.name.endswith(".toml") and entry.name != "sources.toml"
)


def sections(name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The arrays of a table that hold facts."""
    for key, rows in table(name).items():
        if isinstance(rows, list) and key != "source":
            yield key, rows


def named_sources(row: dict[str, Any]) -> list[str]:
    """What a row names as its sources."""
    return [row["source"]] if isinstance(row["source"], str) else row["source"]


def source_of(name: str, text: str) -> dict[str, Any]:
    """A source of a row: of its own table, by id, or a project of ``sources.toml``, by its first word."""
    own = {row["id"].lower(): row for row in table(name).get("source", [])}
    projects = {row["id"].lower(): row for row in table("sources")["source"]}
    first = re.match(r"[\w+]+", text)
    assert first, text
    return own.get(text.lower()) or projects[first[0].lower()]


@pytest.mark.parametrize("name", TABLES)
def test_every_row_says_where_it_was_read_and_when(name: str) -> None:
    rows = [row for _, found in sections(name) for row in found]
    assert rows
    for row in rows:
        assert row["check"] in CHECKS, row
        assert named_sources(row), row
        for text in named_sources(row):
            source = source_of(name, text)
            assert source["url"].startswith("https://"), row
            assert source["read"] <= datetime.date.today()
            assert source["name"].strip()


@pytest.mark.parametrize("name", TABLES)
def test_no_row_is_twice(name: str) -> None:
    for section, rows in sections(name):
        keys = [
            (
                next(str(row[key]) for key in IDENTITY if key in row),
                *(row.get(key) for key in BESIDE),
            )
            for row in rows
        ]
        assert len(keys) == len(set(keys)), section


def test_a_build_has_one_list_of_nvidia_packages() -> None:
    named = [version for row in table("tensorflow_builds")["and_cuda"] for version in row["builds"]]
    assert len(named) == len(set(named))
    assert set(named) <= {row["version"] for row in table("tensorflow_builds")["build"]}


def test_sources_are_used_and_named_once() -> None:
    for name in TABLES:
        ids = [row["id"] for row in table(name).get("source", [])]
        used = {s for _, rows in sections(name) for row in rows for s in named_sources(row)}
        assert len(ids) == len(set(ids)), name
        assert set(ids) <= used, name


def test_a_message_belongs_to_a_rule_and_can_be_found() -> None:
    causes = {rule.cause for rule in all_rules()}
    ids = [row.id for row in message_rows()]
    assert len(ids) == len(set(ids))
    for row in message_rows():
        assert row.cause in causes, row.id
        assert row.needles, row.id
        assert row.speaker in ("native", "others"), row.id
        assert all(len(needle) >= 3 for needle in row.needles), row.id


def test_an_unverified_row_is_never_certain() -> None:
    unverified = [row for row in message_rows() if row.check == "unverified"]
    assert unverified
    for row in unverified:
        for needle in row.needles:
            best = explain(Pasted(needle)).best
            assert best.confidence is not Confidence.CERTAIN, needle


def test_xid_numbers_are_unique_and_blame_somebody() -> None:
    rows = table("xid")["xid"]
    numbers = [row["xid"] for row in rows]
    assert len(numbers) == len(set(numbers))
    assert {row["blame"] for row in rows} == {"hardware", "software", "cleanup", "other"}
    blame = {row["xid"]: row["blame"] for row in rows}
    for number in (48, 62, 63, 64, 74, 79, 94, 95, 119, 154):
        assert blame[number] == "hardware"
    for number in (8, 13, 31, 43):
        assert blame[number] == "software"
    assert blame[45] == "cleanup"


def test_the_package_ships_its_tables() -> None:
    root = Path(jupyter_tfguard.__file__).parents[1]
    built = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    assert built["wheel"]["packages"] == ["jupyter_tfguard"]
    shipped = [f"jupyter_tfguard/diagnosis/catalog/{name}.toml" for name in TABLES]
    for target in ("wheel", "sdist"):
        left_out = [path for path in shipped if path.startswith(tuple(built[target]["exclude"]))]
        assert left_out == [], target
    ignored = (root / ".gitignore").read_text().split()
    assert not any("toml" in pattern for pattern in ignored)
