"""`jupyter tfguard why BUNDLE`: a bundle from elsewhere, also one that a stranger made."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.record.bundle_file import LIMIT_BYTES
from jupyter_tfguard.report.anonymous import Identity
from jupyter_tfguard.report.export import export
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.rigs.schemas import matches

pytestmark = pytest.mark.quick

EXAMPLE = Path(__file__).parents[1] / "examples" / "cgroup_oom" / "fires-v2-own-limit.json"
BUNDLE: dict[str, Any] = json.loads(EXAMPLE.read_text())


def zipped(path: Path, **files: Any) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            known = isinstance(content, (str, bytes))
            archive.writestr(name, content if known else json.dumps(content))
    return str(path)


def error(capsys: pytest.CaptureFixture[str], bundle: str) -> str:
    assert main(["why", bundle]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_an_exported_report_is_explained_elsewhere_and_not_kept(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, report = to_entry_and_report(BUNDLE, diagnose(BUNDLE))
    path = tmp_path / "exported.zip"
    path.write_bytes(export(BUNDLE, report, Identity.of_here()).zipped())
    assert main(["why", str(path)]) == 0
    assert "cgroup_oom (certain)" in capsys.readouterr().out
    assert main(["why", str(path), "--json"]) == 0
    found = matches("report", json.loads(capsys.readouterr().out))
    assert (found["cause"], found["evidence"]) == (report["cause"], report["evidence"])
    assert not (data_folder / "bundles").exists()


def test_the_folder_of_a_bundle_is_explained_and_left_as_it_is(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    folder.chmod(0o775)
    (folder / "bundle.json").write_text(json.dumps(BUNDLE))
    assert main(["why", str(folder)]) == 0
    assert "cgroup_oom (certain)" in capsys.readouterr().out
    assert folder.stat().st_mode & 0o777 == 0o775
    assert os.listdir(folder) == ["bundle.json"]


def test_a_zip_writes_no_file_and_nothing_to_the_terminal(
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "one" / "two" / "three"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    forged = json.loads(json.dumps(BUNDLE).replace("train.ipynb", r"\u001b[2J\u202etrain.ipynb"))
    names = {"../../bundle.json": forged, "/etc/away.txt": "x", "../up.txt": "x"}
    path = zipped(folder / "hostile.zip", **names)
    before = sorted(tmp_path.rglob("*"))
    assert main(["why", path]) == 0
    printed = capsys.readouterr().out
    assert "train.ipynb" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"report.json": {}}, "There is no bundle.json"),
        ({"bundle.json": "{"}, "damaged"),
        ({"bundle.json": "[" * 100_000}, "damaged"),
        ({"bundle.json": BUNDLE | {"id": "x"}}, "is not a bundle"),
        ({"bundle.json": BUNDLE | {"format": [99, 0]}}, "upgrade jupyter-tfguard"),
        ({"bundle.json": b" " * (LIMIT_BYTES + 1)}, "larger than any bundle"),
    ],
    ids=["none", "cut", "deep", "id", "newer", "bomb"],
)
def test_a_zip_without_a_readable_bundle_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, Any], message: str
) -> None:
    assert message in error(capsys, zipped(tmp_path / "bad.zip", **files))


def test_what_is_no_zip_and_no_bundle_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray(Path(zipped(tmp_path / "good.zip", **{"bundle.json": BUNDLE})).read_bytes())
    damaged[200] ^= 0xFF
    (tmp_path / "damaged.zip").write_bytes(damaged)
    (tmp_path / "short.zip").write_bytes(damaged[:400])
    for name in ("damaged.zip", "short.zip", "missing.zip"):
        assert "as an exported report" in error(capsys, str(tmp_path / name))
    os.mkfifo(tmp_path / "bundle.json")
    assert "There is no bundle.json" in error(capsys, str(tmp_path))


def test_a_name_that_is_no_file_is_an_id(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No report has the id" in error(capsys, "n" * 5000)
