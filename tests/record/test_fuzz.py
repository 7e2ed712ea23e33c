"""Readers of recordings and reports meet damaged and forged files: nothing is raised but what is declared."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.errors import RecordTooNew, RecordUnreadable
from jupyter_tfguard.record.bundle import BundleStore, check_format
from jupyter_tfguard.record.contents import SIGNALS_LIMIT, read_recording
from jupyter_tfguard.record.recording import HEADER, SIGNAL_PREFIX
from tests.rigs.fuzz import BUNDLE_ID, GOLDEN, Targets

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of forked processes")
def test_damaged_and_forged_inputs_do_no_harm() -> None:
    command = [sys.executable, "tests/rigs/fuzz.py", "--count", "1000", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["inputs"] == 1000
    assert min(found["kinds"].values()) > 0, found["kinds"]


def made_bundle(folder: Path) -> dict[str, Any]:
    Targets(folder)
    found: dict[str, Any] = json.loads(
        (folder / "bundles" / BUNDLE_ID / "bundle.json").read_bytes()
    )
    return found


@pytest.mark.quick
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 10**400])
def test_a_number_beyond_all_bounds_is_unknown_to_a_diagnosis(tmp_path: Path, value: float) -> None:
    bundle = made_bundle(tmp_path)
    wanted = [(found.cause, found.confidence) for found in diagnose(bundle).findings]
    bundle["identity"]["pid"] = value
    bundle["kernel"]["header"]["parent_pid"] = value
    for table in ("samples", "seconds", "minutes"):
        bundle["kernel"][table]["rows"].append([value] * 9)
    found = diagnose(bundle).findings
    assert [(finding.cause, finding.confidence) for finding in found] == wanted


@pytest.mark.quick
def test_the_refusal_of_a_newer_bundle_is_one_sentence_whatever_its_id_says() -> None:
    with pytest.raises(RecordTooNew) as refused:
        check_format({"format": [9, 0], "id": "\n" + "a" * 100_000})
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


@pytest.mark.quick
def test_a_flood_of_files_in_a_recording_is_not_read_to_its_end(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "1-2")
    for number in range(200):
        (tmp_path / "1-2" / f"{SIGNAL_PREFIX}A{number}.txt").write_text("forged")
    contents = read_recording(tmp_path / "1-2")
    assert len(contents.signal_texts) == SIGNALS_LIMIT


# json.dumps writes Infinity and NaN as Python's json reads them back.
FORMATS: list[Any] = [None, "2", [], ["2"], [True], [-1], [float("nan")], [10**400]]


@pytest.mark.quick
@pytest.mark.parametrize("version", FORMATS, ids=lambda v: repr(v)[:20])
def test_a_version_that_is_none_makes_a_recording_unreadable(tmp_path: Path, version: Any) -> None:
    shutil.copytree(GOLDEN, tmp_path / "1-2")
    (tmp_path / "1-2" / HEADER).write_text(json.dumps({"format": version}))
    with pytest.raises(RecordUnreadable) as refused:
        read_recording(tmp_path / "1-2")
    assert not isinstance(refused.value, RecordTooNew)


@pytest.mark.quick
@pytest.mark.parametrize("version", FORMATS, ids=lambda v: repr(v)[:20])
def test_a_version_that_is_none_makes_a_report_unreadable(tmp_path: Path, version: Any) -> None:
    path = tmp_path / "bundles" / BUNDLE_ID / "bundle.json"
    path.write_text(json.dumps(made_bundle(tmp_path) | {"format": version}))
    with pytest.raises(RecordUnreadable) as refused:
        BundleStore(tmp_path / "bundles").bundle(BUNDLE_ID)
    assert not isinstance(refused.value, RecordTooNew)
