"""The doctor before folders of records: the proof by a killed process, what is mounted there, and the space left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from jupyter_tfguard.doctor import probe as probing
from jupyter_tfguard.doctor.check import Status
from jupyter_tfguard.doctor.checks import crash_record, data_folder
from jupyter_tfguard.doctor.environment import Environment
from jupyter_tfguard.places import recordings_folder
from jupyter_tfguard.postmortem.detect import each_orphan
from tests.rigs.made_machine import MadeMachine

pytestmark = pytest.mark.usefixtures("records")


@pytest.fixture
def records(data_folder: Path) -> Path:
    """A private folder for everything tfguard keeps."""
    return data_folder


def test_a_killed_process_leaves_a_record(records: Path) -> None:
    found = crash_record.check(Environment.here())
    assert found.status is Status.OK, found
    assert [path.name for path in records.iterdir()] == []  # and removes it


def test_the_probe_is_never_taken_for_a_kernel(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server beside the doctor would report its death."""
    seen = []
    monkeypatch.setattr(probing, "remove_folder", seen.append)
    assert crash_record.check(Environment.here()).status is Status.OK
    assert seen
    assert seen[0].parent == recordings_folder().parent
    assert list(each_orphan(recordings_folder())) == []


def test_a_record_that_lacks_something_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, records: Path
) -> None:
    monkeypatch.setattr(probing, "STDERR_LINE", "words that were never written")
    found = crash_record.check(Environment.here())
    assert found.status is Status.PROBLEM
    assert "lacks stderr tail" in found.text


def test_a_process_that_cannot_record_is_reported_as_not_checked(
    records: Path, tmp_path: Path
) -> None:
    made = MadeMachine(tmp_path)
    found = crash_record.check(made.environment(python="/bin/false"))
    assert found.status is Status.UNKNOWN
    found = crash_record.check(made.environment(python="/nowhere/python"))
    assert found.status is Status.UNKNOWN


def test_one_that_hangs_is_given_up(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "_LIMIT_SECONDS", 0.3)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 30\n")
    python.chmod(0o700)
    found = crash_record.check(MadeMachine(tmp_path).environment(python=str(python)))
    assert found.status is Status.UNKNOWN
    assert "was not ready" in found.text


@pytest.mark.skipif(sys.platform != "linux", reason="limits of POSIX")
def test_a_limit_on_file_sizes_shows_in_the_proof_and_not_among_our_failures(records: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100 * 1024,) * 2)\n"
        "from jupyter_tfguard.doctor.checks import crash_record\n"
        "from jupyter_tfguard.doctor.environment import Environment\n"
        "print(crash_record.check(Environment.here()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert "lacks" in done.stdout
    assert "samples" in done.stdout
    assert os.listdir(records) == []


# --- the folder


def mounted(made: MadeMachine, kind: str, point: str = "/") -> Environment:
    made.write("/proc/self/mountinfo", f"22 1 0:5 / {point} rw - {kind} x rw\n")
    return made.environment()


@pytest.mark.skipif(sys.platform != "linux", reason="mounts of Linux")
@pytest.mark.parametrize(
    ("kind", "container", "status"),
    [
        ("ext4", False, Status.OK),
        ("ext4", True, Status.WARNING),
        ("overlay", False, Status.WARNING),
        ("overlay", True, Status.WARNING),
    ],
)
def test_reports_that_go_with_their_container_are_reported(
    tmp_path: Path, kind: str, container: bool, status: Status
) -> None:
    made = MadeMachine(tmp_path)
    if container:
        made.write("/.dockerenv")
    (found,) = data_folder.check(mounted(made, kind))
    assert found.status is status, found
    assert (found.fix is None) == (status is Status.OK)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts of Linux")
def test_a_volume_in_a_container_is_fine(tmp_path: Path, records: Path) -> None:
    made = MadeMachine(tmp_path)
    made.write("/.dockerenv")
    (found,) = data_folder.check(mounted(made, "ext4", str(records.parent)))
    assert found.status is Status.OK


def test_little_space_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 40, 1 << 40, 1 << 20))
    (found,) = data_folder.check(mounted(MadeMachine(tmp_path), "ext4"))
    assert found.status is Status.WARNING
    assert "1 MiB free space" in found.text
    assert os.listdir(tmp_path / "tfguard") == []
