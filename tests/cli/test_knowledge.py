"""`jupyter tfguard knowledge`: the tables as a person reads them, and as a program does."""

from __future__ import annotations

import json

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.diagnosis.catalog.listing import listing, table_names

pytestmark = pytest.mark.quick


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["knowledge", *arguments]) == 0
    return capsys.readouterr().out


def test_without_a_name_it_lists_the_tables_with_rows_and_day(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys).splitlines()
    for name in table_names():
        found = listing(name)
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert f" {found.row_count:,} rows  {found.read}  {found.title[:20]}" in line
    assert "xid" in table_names()
    assert "sources" not in table_names()


@pytest.mark.parametrize("columns", ["80", "100", "200", "20"])
@pytest.mark.parametrize("name", table_names())
def test_a_table_fits_the_screen(
    name: str, columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = printed(capsys, name).splitlines()
    width = min(100, max(80, int(columns)))
    assert [line for line in lines if len(line) > width and "https://" not in line] == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("name", table_names())
def test_each_source_is_named_once_as_a_footnote(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body, notes = printed(capsys, name).split("\nSources", 1)
    assert "https://" in notes
    numbers = [
        line.split("]")[0].strip(" [") for line in notes.splitlines() if line.startswith("  [")
    ]
    assert numbers == [str(number + 1) for number in range(len(numbers))]
    assert "[1" in body
    names = [line for line in notes.splitlines() if line.startswith("  [")]
    assert len(names) == len({line.split("]", 1)[1] for line in names})


def test_a_row_that_nobody_verified_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "gpu_arch").splitlines()
    (kepler,) = [line for line in lines if "Kepler  " in line]
    (turing,) = [line for line in lines if "Turing  " in line]
    assert kepler.endswith("] ?")
    assert turing.endswith("]")
    assert "? not verified: told, and never decides alone" in lines


def test_a_text_is_found_in_one_table_and_in_all(capsys: pytest.CaptureFixture[str]) -> None:
    one = printed(capsys, "cuda_errors", "--find", "illegal_address")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in one
    assert "CUDA_ERROR_ASSERT" not in one
    everywhere = printed(capsys, "--find", "GTX 10xx")
    assert "Pascal" in everywhere
    assert "Hopper" not in everywhere
    assert printed(capsys, "xid", "--find", "zebra") == "No row of the table xid holds 'zebra'.\n"
    assert printed(capsys, "--find", "zebra") == "No row of any table holds 'zebra'.\n"


def test_an_unknown_table_is_one_sentence_that_names_the_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["knowledge", "tensorflow"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert all(name in said.err for name in table_names())


@pytest.mark.parametrize("name", table_names())
def test_json_holds_every_row_with_its_sources(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = json.loads(printed(capsys, name, "--json"))
    rows = [row for section in found["sections"].values() for row in section]
    assert len(rows) == listing(name).row_count
    for row in rows:
        assert row["verified"] is (row["check"] != "unverified")
        assert all(source["url"].startswith("https://") for source in row["sources"])


def test_json_of_all_tables_is_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "--json"))
    assert [one["name"] for one in found] == list(table_names())
    assert json.loads(printed(capsys, "--json", "--find", "zebra")) == []
