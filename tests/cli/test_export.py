"""`jupyter tfguard export`: the zip, the choices, and what may still be a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.bundle_file import read_bundle_file
from tests.cli.test_forget import die
from tests.rigs.schemas import matches

pytestmark = pytest.mark.quick


@pytest.fixture
def store(data_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BundleStore:
    monkeypatch.chdir(tmp_path)
    return BundleStore(data_folder / "bundles")


def test_the_newest_report_is_saved_and_read_again(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export"]) == 2
    assert "no crash yet" in capsys.readouterr().err
    die(store, notebook_path="q9Xt2LbV7cRm4KwZp1Ns/a.ipynb")
    [report_id] = store.ids()
    assert main(["export"]) == 0
    printed = capsys.readouterr()
    saved = Path(f"tfguard-{report_id}.zip")
    assert str(saved) in printed.out
    assert "q9Xt2LbV7cRm4KwZp1Ns" in printed.err
    assert read_bundle_file(saved)["id"] == report_id
    assert main(["export", report_id[:10]]) == 2
    assert "--force" in capsys.readouterr().err
    words = ["--force", "--json", "--replace", "Q9XT2LBV7CRM4KWZP1NS", "--without", "stderr"]
    assert main(["export", report_id, "--output", str(saved), *words]) == 0
    found = matches("export", json.loads(capsys.readouterr().out))
    assert found["flagged"] == []
    assert "q9Xt" not in json.dumps(read_bundle_file(saved))


@pytest.mark.parametrize(
    "words", [["--replace", "x"], ["nonsense"], ["--output", "no/such/folder.zip"]]
)
def test_what_cannot_be_saved_is_a_sentence(
    store: BundleStore, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    die(store)
    assert main(["export", *words]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("jupyter tfguard: ")
    assert printed.out == ""
    assert not list(Path().glob("*.zip"))
