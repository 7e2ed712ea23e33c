"""The tables of outside facts: every row says where it was read, and no unverified one decides alone."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pytest

import jupyter_tfguard
from jupyter_tfguard.diagnosis.catalog import table
from jupyter_tfguard.diagnosis.catalog.listing import listing, table_names
from jupyter_tfguard.diagnosis.catalog.origin import origin
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


@pytest.mark.parametrize("name", table_names())
def test_every_row_says_where_it_was_read_and_when(name: str) -> None:
    rows = [row for section in listing(name).sections for row in section.rows]
    assert rows
    for row in rows:
        assert row.origin.sources, row.facts
        for source in row.origin.sources:
            assert source.url.startswith("https://"), row.facts
            assert source.read <= datetime.date.today()
            assert source.name.strip()


@pytest.mark.parametrize("name", table_names())
def test_no_row_stands_twice(name: str) -> None:
    for section in listing(name).sections:
        keys = [
            (
                next(str(row.facts[key]) for key in IDENTITY if key in row.facts),
                *(row.facts.get(key) for key in BESIDE),
            )
            for row in section.rows
        ]
        assert len(keys) == len(set(keys)), section.name


def test_a_build_has_one_list_of_nvidia_packages() -> None:
    named = [version for row in table("tensorflow_builds")["and_cuda"] for version in row["builds"]]
    assert len(named) == len(set(named))
    assert set(named) <= {row["version"] for row in table("tensorflow_builds")["build"]}


def test_sources_are_used_and_named_once() -> None:
    for name in table_names():
        ids = [row["id"] for row in table(name).get("source", [])]
        used = {
            source
            for section in table(name).values()
            if isinstance(section, list)
            for row in section
            for source in (
                [row["source"]] if isinstance(row.get("source"), str) else row.get("source", [])
            )
        }
        assert len(ids) == len(set(ids)), name
        assert set(ids) <= used, name


def test_a_source_that_nobody_named_is_an_error() -> None:
    with pytest.raises(KeyError, match="is not known"):
        origin("cudnn", {"check": "read", "source": "nobody's notes"})


def test_what_follows_from_two_rows_is_verified_no_further_than_the_weaker() -> None:
    read = origin("cudnn", {"check": "read", "source": "api"})
    unverified = origin("cudnn", {"check": "unverified", "source": "headers"})
    assert read.verified
    assert not unverified.verified
    assert not (read + unverified).verified
    assert len((read + unverified).sources) == 2


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
    shipped = [f"jupyter_tfguard/diagnosis/catalog/{name}.toml" for name in table_names()]
    for target in ("wheel", "sdist"):
        left_out = [path for path in shipped if path.startswith(tuple(built[target]["exclude"]))]
        assert left_out == [], target
    ignored = (root / ".gitignore").read_text().split()
    assert not any("toml" in pattern for pattern in ignored)
