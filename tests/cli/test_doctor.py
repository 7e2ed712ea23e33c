"""`jupyter tfguard doctor`: every part is named, and what is missing comes with one command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.schemas import matches


def doctor(tmp_path: Path, **more: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit code and checks by name; of several with one name the first."""
    done = run(tmp_path, "--json", **more)
    checks: dict[str, dict[str, str]] = {}
    for check in matches("checks", json.loads(done.stdout))["checks"]:
        checks.setdefault(check["name"], check)
    return done.returncode, checks


def printed(tmp_path: Path, **more: str) -> str:
    return run(tmp_path, **more).stdout


def run(tmp_path: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    private = {
        "TFGUARD_DIR": str(tmp_path / "data"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "share"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("TFGUARD_", "TF_FORCE"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_tfguard", "doctor", *options],
        env=environment | private | more,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    return done


def test_a_sound_installation_has_no_problem(tmp_path: Path) -> None:
    code, checks = doctor(tmp_path)
    assert {name: c["status"] for name, c in checks.items() if c["status"] == "problem"} == {}
    frame = (
        "guard loaded into kernels",
        "guard enabled",
        "server extension",
        "JupyterLab panel",
        "errors of tfguard itself",
        "recording of a killed process",
    )
    assert {checks[name]["status"] for name in frame} == {"ok"}
    assert code in (0, 2)  # a machine may hide something; nothing of that is a problem


def test_people_read_what_is_wrong_first_and_how_much_at_the_end(tmp_path: Path) -> None:
    text = printed(tmp_path, TFGUARD_DISABLE="1", TF_FORCE_GPU_ALLOW_GROWTH="no")
    marks = [line[0] for line in text.splitlines() if line[:1] in "✕▲?✓" and line]
    assert marks == sorted(marks, key="✕▲?✓".index)
    assert marks.count("✓") == 1  # what is in order does not hide the rest
    assert "    fix: unset TFGUARD_DISABLE" in text.splitlines()
    assert text.splitlines()[-1].endswith(" ok")
    assert "warnings" in text.splitlines()[-1]


def test_a_settings_file_that_is_no_json_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "jupyter_tfguard_config.json").write_text("{oops")
    code, checks = doctor(tmp_path)
    assert checks["guard enabled"]["status"] == "problem"
    assert code == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_folder_that_cannot_be_written_is_a_problem_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    code, checks = doctor(tmp_path)
    assert checks["data folder"]["status"] == "problem"
    assert "TFGUARD_DIR" in checks["data folder"]["fix"]
    assert code == 1
