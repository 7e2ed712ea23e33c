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
from jupyter_tfguard.report.text import markdown, render
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.rigs.schemas import matches
from tests.rigs.why_bundles import Bundles

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


def test_a_report_without_its_bundle_is_read_too(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, report = to_entry_and_report(BUNDLE, diagnose(BUNDLE))
    files = {
        "report.json": json.dumps(report),
        "report.md": markdown(report),
        "why.txt": render(report),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_text(content)
        assert main(["why", str(path)]) == 0
        said = capsys.readouterr().out
        assert "cgroup_oom (certain)" in said, name
        assert "report of jupyter-tfguard" in said, name
        assert report["advice"][0]["title"] in " ".join(said.split()), name
        assert main(["why", str(path), "--json"]) == 0
        (best,) = json.loads(capsys.readouterr().out)["findings"]
        assert (best["cause"], best["title"]) == (report["cause"], report["title"])


def test_another_text_is_refused_with_the_command_for_it(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.txt"
    path.write_text("Killed")
    assert "explain FILE" in error(capsys, str(path))


def test_the_file_of_the_bundle_is_a_bundle(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps(BUNDLE))
    assert main(["why", str(path)]) == 0
    assert "cgroup_oom (certain)" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("name", ["x.zip", "bundle.json", "report.json"])
def test_a_pipe_is_refused_and_not_waited_for(
    name: str, data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / name)
    assert "is not a file" in error(capsys, str(tmp_path / name))


def test_the_name_of_a_file_cannot_give_a_terminal_orders(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "\x1b]0;owned\x07\x1b[31mred.zip"
    assert "\x1b" not in error(capsys, str(path))
    path.write_bytes(b"PK")
    assert "\x1b" not in error(capsys, str(path))


def test_changed_bundles_are_explained_or_refused_in_a_sentence(
    data_folder: Path, tmp_path: Path
) -> None:
    bundles = Bundles(tmp_path)
    answers = [bundles.one(2, number)[0] for number in range(60)]
    assert any(answers)
    assert not all(answers)


@pytest.mark.parametrize("value", [True, 7, ["a"], {"a": 1}, float("nan"), float("inf"), 1e308])
@pytest.mark.parametrize("key", ["notebook_path", "kernel_id", "kernel_name", "pid", "died"])
def test_no_value_of_the_identity_is_trusted(
    key: str, value: object, data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = {**BUNDLE, "identity": {**BUNDLE["identity"], key: value}}
    path = zipped(tmp_path / "x.zip", **{"bundle.json": bundle})
    assert main(["why", path]) == 0
    capsys.readouterr()
    assert main(["why", path, "--json"]) == 0
    said = capsys.readouterr().out
    assert "NaN" not in said
    assert "Infinity" not in said
