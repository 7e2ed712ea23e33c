"""Who lives, here, on other machines and in other containers; and that a death is claimed once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.record import alive
from jupyter_tfguard.record.alive import (
    FRESH_SECONDS,
    JudgedBy,
    Place,
    claim,
    is_claimed,
    lock_is_held,
    recording_name,
)
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from tests.record.alive_rig import Writer, age, linux, namespaces_work
from tests.rigs.waiting import wait_until

ELSEWHERE = {"host": "other/0", "boot_id": "b", "pid_namespace": "pid:[5]"}


@linux
def test_the_lock_is_held_while_the_process_lives_and_free_after_sigkill(
    root: Path, writers: list[Writer]
) -> None:
    writers.append(writer := Writer(root))
    assert lock_is_held(writer.path)
    writer.kill()
    assert lock_is_held(writer.path) is False


@linux
def test_a_lock_that_user_code_dropped_is_taken_again_a_second_later(
    root: Path, writers: list[Writer]
) -> None:
    drop = (
        "open(recording.folder.path / 'alive.lock').close(); print('dropped', flush=True);"
        "sys.stdin.readline(); from jupyter_tfguard.metrics import Sample;"
        "[recording.sample(Sample(n, n, n, {})) for n in (1, 2, 3)]; print('sampled', flush=True); sys.stdin.read()"
    )
    writers.append(writer := Writer(root, drop))
    assert writer.read() == "dropped"
    assert lock_is_held(writer.path) is False
    assert list(each_orphan(root)) == []  # its process runs here
    assert writer.process.stdin is not None
    writer.process.stdin.write("\n")
    writer.process.stdin.flush()
    assert writer.read() == "sampled"
    assert lock_is_held(writer.path)


@linux
def test_a_descriptor_that_became_another_file_is_left_alone(tmp_path: Path) -> None:
    recording = Recording(tmp_path, ProcessIdentity(7, 7), {}, ())
    lock = recording._alive
    assert lock is not None
    number = lock._descriptor
    os.close(number)
    theirs = os.open(tmp_path / "precious", os.O_RDWR | os.O_CREAT)
    os.dup2(theirs, number)
    lock.renew()
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "precious")], check=True)
    os.close(theirs)
    recording.close()


@linux
def test_a_recording_that_another_living_kernel_has_is_never_written_to(
    root: Path, writers: list[Writer]
) -> None:
    writers.append(writer := Writer(root))
    before = {path.name: path.read_bytes() for path in writer.path.iterdir()}
    with pytest.raises(FolderUnusable, match="belongs to another running kernel"):
        Recording(root, writer.identity(), {"kernel_id": "another"}, ())
    assert {path.name: path.read_bytes() for path in writer.path.iterdir()} == before


@pytest.mark.quick
def test_without_locks_no_file_is_left_that_would_read_as_a_death(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "fcntl", None)
    recording = Recording(root, ProcessIdentity(7, 7), ELSEWHERE, ())
    assert not (recording.folder.path / alive.LOCK).exists()
    recording.close()
    assert lock_is_held(recording.folder.path) is None
    assert list(each_orphan(root)) == []


@pytest.mark.quick
def test_a_kernel_of_another_machine_is_left_alone_until_it_is_silent(root: Path) -> None:
    """Its lock is not seen from here, as on a network file system that locks for each machine alone."""
    recording = Recording(root, ProcessIdentity(7, 7), ELSEWHERE | {"parent_pid": 1}, ())
    recording.close()
    os.unlink(recording.folder.path / alive.LOCK)
    assert list(each_orphan(root)) == []
    age(recording.folder.path, FRESH_SECONDS - 30)
    assert list(each_orphan(root)) == []
    age(recording.folder.path, FRESH_SECONDS + 30)
    (orphan,) = each_orphan(root)
    assert orphan.judged_by is JudgedBy.SILENCE
    assert not orphan.parent_is_gone  # nobody knows
    assert not orphan.same_processes


@pytest.mark.quick
def test_an_unheld_lock_means_nothing_on_a_remote_file_system(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Recording(root, ProcessIdentity(7, 7), ELSEWHERE, ()).close()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"22 1 0:21 / / rw - ext4 /dev/sda rw\n23 22 0:22 / {root} rw - nfs4 s:/home rw\n"
    )
    monkeypatch.setattr("jupyter_tfguard.mounts.MOUNTINFO", mounts)
    assert list(each_orphan(root)) == []
    mounts.write_text("22 1 0:21 / / rw - ext4 /dev/sda rw\n")
    (orphan,) = each_orphan(root)
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
    # The namespace is taken down after unshare itself.
    wait_until(lambda: lock_is_held(dying.path) is False, "the lock of the dead kernel to be free")
    (orphan,) = each_orphan(root)
    assert orphan.contents.header["kernel_id"] == "dying"
    assert orphan.judged_by is JudgedBy.LOCK
    assert not orphan.parent_is_gone
    assert living.path.is_dir()


@pytest.mark.quick
def test_a_claim_is_respected_until_it_is_silent_and_then_taken_over_once(root: Path) -> None:
    Recording(root, ProcessIdentity(7, 7), ELSEWHERE, ()).close()
    mine = claim(root / "7-7")
    assert mine is not None
    assert claim(root / "7-7") is None
    assert recording_name(mine) == "7-7"
    assert recording_name(root / "claimed-4711-7-7") == "7-7"  # of an early version
    assert is_claimed(mine)
    assert list(each_orphan(root)) == []
    age(mine, FRESH_SECONDS + 30)
    assert not is_claimed(mine)
    (orphan,) = each_orphan(root)
    assert orphan.contents.path != mine
    assert claim(mine) is None


@pytest.mark.quick
def test_the_claim_of_a_process_that_ended_is_taken_over_at_once(root: Path) -> None:
    Recording(root, ProcessIdentity(7, 7), ELSEWHERE, ()).close()
    code = (
        "import sys, pathlib\nfrom jupyter_tfguard.record.alive import claim\n"
        "print(claim(pathlib.Path(sys.argv[1])), flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(root / "7-7")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as claimant:
        assert claimant.stdout is not None
        claimed = Path(claimant.stdout.readline().strip())
        assert is_claimed(claimed)
    assert not is_claimed(claimed)
    for elsewhere in ('{"process": "1-1", "boot_id": "other"}', "[", '{"process": 5}'):
        (claimed / "claimant.json").write_text(elsewhere)
        assert is_claimed(claimed)
    # A watcher of an earlier version names itself nowhere. After an upgrade under it, it cannot write its report.
    (claimed / "claimant.json").unlink()
    assert is_claimed(claimed)
    age(claimed, 20)
    assert not is_claimed(claimed)
