"""Who lives on other machines and in other containers, where a process cannot be seen."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_tfguard.postmortem.detect import orphans
from jupyter_tfguard.record import alive
from jupyter_tfguard.record.alive import FRESH_SECONDS, JudgedBy, Lock, Looker, Place
from jupyter_tfguard.record.claims import Claimed, claim
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from tests.record.alive_rig import Writer, age, linux, namespaces_work, wait_for_lock


def test_a_kernel_of_another_machine_is_left_alone_until_it_is_silent(
    root: Path, writers: list[Writer]
) -> None:
    """Its lock is not seen from here, as on a network file system that locks for each machine alone."""
    elsewhere = '{"host": "other/0", "boot_id": "b", "pid_namespace": "pid:[5]", "parent_pid": 1}'
    writers.append(writer := Writer(root, header=elsewhere))
    os.unlink(writer.path / alive.LOCK)
    assert orphans(root) == []
    age(writer.path, FRESH_SECONDS - 30)
    assert orphans(root) == []
    age(writer.path, FRESH_SECONDS + 30)
    (orphan,) = orphans(root)
    assert orphan.judged_by is JudgedBy.SILENCE
    assert not orphan.parent_is_gone  # nobody knows
    assert not orphan.same_processes


def test_an_unheld_lock_means_nothing_on_a_remote_file_system(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = {"host": "other/0", "boot_id": "b", "pid_namespace": "pid:[5]"}
    recording = Recording(root, ProcessIdentity(7, 7), elsewhere, ())
    recording.close()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"22 1 0:21 / / rw - ext4 /dev/sda rw\n23 22 0:22 / {root} rw - nfs4 s:/home rw\n"
    )
    monkeypatch.setattr("jupyter_tfguard.mounts.MOUNTINFO", mounts)
    assert orphans(root) == []
    mounts.write_text("22 1 0:21 / / rw - ext4 /dev/sda rw\n")
    (orphan,) = orphans(root)
    assert orphan.judged_by is JudgedBy.LOCK


@linux
@pytest.mark.skipif(not namespaces_work(), reason="needs the right to make a pid namespace")
def test_a_living_kernel_in_another_container_is_left_alone_and_a_dead_one_is_found(
    root: Path, writers: list[Writer]
) -> None:
    writers.append(living := Writer(root, namespace=True))
    writers.append(dying := Writer(root, namespace=True, header='{"kernel_id": "dying"}'))
    header = read_recording(living.path).header
    assert header["boot_id"] == Place.here().boot_id
    assert header["pid_namespace"] != Place.here().pid_namespace
    dying.kill()
    wait_for_lock(dying.path, Lock.FREE)  # the namespace is taken down after unshare itself
    (orphan,) = orphans(root)
    assert orphan.contents.header["kernel_id"] == "dying"
    assert orphan.judged_by is JudgedBy.LOCK
    assert not orphan.parent_is_gone
    assert living.path.is_dir()


@linux
@pytest.mark.skipif(not namespaces_work(), reason="needs the right to make a pid namespace")
def test_a_server_in_a_container_leaves_kernels_outside_alone(
    root: Path, writers: list[Writer]
) -> None:
    writers.append(outside := Writer(root))
    scan = (
        "import sys; from pathlib import Path; from jupyter_tfguard.postmortem.detect import orphans;"
        "print(len(orphans(Path(sys.argv[1]))))"
    )
    front = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", scan, str(root)]

    def look() -> str:
        return subprocess.run(front, capture_output=True, text=True, check=True).stdout.strip()

    assert look() == "0"
    assert outside.path.is_dir()
    outside.kill()
    assert look() == "1"


@pytest.mark.quick
def test_a_claim_of_another_machine_is_respected_until_it_is_silent(root: Path) -> None:
    Recording(root, ProcessIdentity(7, 7), {}, ()).close()
    mine = claim(root / "7-7")
    assert mine is not None
    theirs = mine.rename(mine.with_name(mine.name.replace(Place.here().key, "0badcafe")))
    claimed = Claimed.from_folder_name(theirs.name)
    assert claimed is not None
    assert claimed.original == "7-7"
    assert not claimed.is_abandoned(theirs, Looker(root))
    assert orphans(root) == []
    age(theirs, FRESH_SECONDS + 30)
    assert claimed.is_abandoned(theirs, Looker(root))
    assert len(orphans(root)) == 1


@pytest.mark.quick
def test_silence_is_measured_by_the_clock_of_the_file_system(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Recording(root, ProcessIdentity(7, 7), {}, ()).close()
    monkeypatch.setattr(time, "time", lambda: 4e9)  # our own clock is decades ahead
    assert 0 <= Looker(root).silent_seconds(root / "7-7") < 60
    assert sorted(path.name for path in root.iterdir()) == ["7-7"]  # the probe is gone
