"""Recordings carried to a remote data folder: whole, only what is new, once per crash, and never waited for."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard import mounts, places
from jupyter_tfguard.doctor.check import Status
from jupyter_tfguard.doctor.checks.data_folder import check as check_data_folder
from jupyter_tfguard.doctor.environment import Environment
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.alive import LOCK
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.native_text import FILE_BYTES, KEPT_BYTES, file_name
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.server.problems import problems
from jupyter_tfguard.watch import copies as copies_module
from jupyter_tfguard.watch.copies import Copies
from tests.rigs.waiting import wait_until

METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)


class Rig:
    """A recording, its copy, and the thread between them."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        identity = ProcessIdentity.of(self.process.pid)
        assert identity is not None
        self.identity = identity
        self.local, self.remote = folder / "tfguard" / "live", folder / "tfguard" / "recordings"
        self.recording = Recording(self.local, self.identity, {"kernel_id": "k"}, METRICS)
        self.copies = Copies(self.local, self.remote)
        self.copy = self.remote / self.identity.folder_name
        self.taken = 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def sample(self, count: int) -> None:
        for _ in range(count):
            self.taken += 1
            self.recording.sample(
                Sample(
                    self.taken,
                    self.taken / 10,
                    1.7e9 + self.taken / 10,
                    {"process.rss_bytes": self.taken},
                )
            )

    def same(self) -> bool:
        try:
            ours, theirs = read_recording(self.recording.folder.path), read_recording(self.copy)
        except Exception:
            return False
        return (
            ours.samples,
            ours.seconds,
            ours.events,
            ours.progress,
            ours.stderr_tail,
            ours.header,
        ) == (
            theirs.samples,
            theirs.seconds,
            theirs.events,
            theirs.progress,
            theirs.stderr_tail,
            theirs.header,
        )


@pytest.fixture
def rig(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(copies_module, "_ROUND_SECONDS", 0.02)
    made = Rig(data_folder.parent)
    yield made
    made.copies.stop()
    made.recording.close()
    made.end()


def test_a_copy_is_the_recording_after_any_number_of_records(rig: Rig) -> None:
    rig.copies.start()
    for count in (1, 500, 5000):
        rig.sample(count)
        rig.recording.event("cell_start", execution_count=count, head="x" * 3000)
        rig.recording.set_progress({"what": "fit", "step": count})
        rig.recording.folder.write_whole("stderr.0.txt", b"word %d\n" % count)
        wait_until(rig.same, f"the copy after {count} samples is another")
    assert not (rig.copy / LOCK).exists()  # nobody holds it there: it would read as a crash


def test_a_death_is_reported_from_the_local_recording_and_once(rig: Rig) -> None:
    rig.copies.start()
    wait_until(rig.same, "no copy")
    rig.end()
    assert rig.copies.settle(rig.identity) == rig.recording.folder.path
    wait_until(lambda: not rig.copy.exists(), "the copy of a reported crash to go")
    rig.recording.close()
    assert len(list(each_orphan(rig.local, rig.remote))) == 1
    assert list(each_orphan(rig.local, rig.remote)) == []


def test_an_orphan_and_its_copy_are_one(rig: Rig) -> None:
    rig.copies.start()
    wait_until(rig.same, "no copy")
    rig.copies.stop()
    rig.end()
    rig.recording.close()
    (orphan,) = list(each_orphan(rig.local, rig.remote))
    assert orphan.contents.path.parent == rig.local
    orphan.give_back()
    assert rig.copy.is_dir()
    (orphan,) = list(each_orphan(rig.local, rig.remote))
    orphan.remove()
    assert [*rig.local.iterdir(), *rig.remote.iterdir()] == []


def test_the_copy_speaks_when_the_local_folder_is_gone(rig: Rig) -> None:
    """The container is gone with its temporary folder; the home stays."""
    rig.sample(3)
    rig.copies.start()
    wait_until(rig.same, "no copy")
    rig.end()
    rig.recording.remove()
    assert rig.copies.settle(rig.identity) == rig.copy
    (orphan,) = list(each_orphan(rig.local, rig.remote))
    assert len(orphan.contents.samples) == 3


def test_a_full_remote_disk_is_noted_once_and_tried_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def full(folder: PrivateFolder, name: str, content: bytes) -> None:
        nonlocal tries
        tries += 1
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    real = PrivateFolder.write_whole
    monkeypatch.setattr(PrivateFolder, "write_whole", full)
    rig.copies.start()
    noted = places.data_folder() / "problems.jsonl"
    wait_until(noted.exists, "nothing was noted")
    wait_until(lambda: tries > 3, "it was not tried again")
    assert len(noted.read_text().splitlines()) == 1
    monkeypatch.setattr(PrivateFolder, "write_whole", real)
    rig.sample(3)
    wait_until(rig.same, "it was not tried again")


# --- which file system it is

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /home rw - autofs auto.home rw
24 23 0:22 / /home/ann rw - nfs4 server:/ann rw
25 24 0:23 / /home/ann/scratch rw - xfs /dev/sdb rw
26 22 0:24 / /mnt/with\\040space rw shared:1 - fuse.sshfs me@there: rw
27 22 0:25 / /c rw - 9p drvfs rw
28 22 0:26 / /over rw - nfs old:/ rw
29 22 0:27 / /over rw - tmpfs tmpfs rw
30 22 8:1 / /stick rw - fuseblk /dev/sdc1 rw
a broken line
"""


@pytest.mark.quick
@pytest.mark.parametrize(
    ("path", "remote"),
    [
        ("/", False), ("/home", False), ("/home/ann", True), ("/home/ann/.local/not/yet", True),
        ("/home/anne", False), ("/home/ann/scratch/x", False), ("/mnt/with space/a", True),
        ("/mnt/with", False), ("/c/Users", True), ("/over/x", False), ("/stick/x", False),
    ],
)  # fmt: skip
def test_remote_file_systems_are_distinguished_from_local_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, remote: bool
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert mounts.is_remote(Path(path)) is remote
    (tmp_path / "mountinfo").unlink()
    assert mounts.is_remote(Path(path)) is False  # nobody can tell


@pytest.fixture
def remote_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder on NFS, as far as anybody can tell."""
    for name in ("home", "tmp", "run"):
        (tmp_path / name).mkdir(mode=0o700)
    lines = ["22 1 8:1 / / rw - ext4 d rw", f"23 22 0:22 / {tmp_path / 'home'} rw - nfs4 s:/h rw"]
    (tmp_path / "mountinfo").write_text("\n".join(lines))
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "home" / "tfguard"))
    monkeypatch.delenv("TFGUARD_LIVE_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path


@pytest.mark.quick
def test_live_recordings_lie_on_a_local_disk_in_a_private_folder(
    remote_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = places.recordings_folder()
    assert live.parent.parent == remote_home / "tmp"
    assert live.parent.stat().st_mode & 0o777 == 0o700
    assert places.recordings_folder() == live  # every process of this user finds it
    assert places.copies_folder() == remote_home / "home" / "tfguard" / "recordings"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(remote_home / "run"))
    assert places.recordings_folder().is_relative_to(remote_home / "run")
    (remote_home / "run").chmod(0o755)
    assert places.recordings_folder() == live  # not private
    monkeypatch.setenv("TFGUARD_LIVE_DIR", str(remote_home / "mine"))
    mine = places.recordings_folder()
    assert mine.parent == remote_home / "mine"
    monkeypatch.setenv("TFGUARD_DIR", str(remote_home / "home" / "other"))
    assert places.recordings_folder() != mine  # two data folders do not mix


@pytest.mark.quick
@pytest.mark.parametrize("taken", ["open to others", "a link", "a file", "of another user"])
def test_a_folder_that_another_user_took_first_is_replaced_by_a_private_one(
    remote_home: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    first = places.live_folder()
    assert first is not None
    if taken == "open to others":
        first.chmod(0o777)
    elif taken == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(first, 12345, 12345)
        (remote_home / "tmp" / f"{first.name}-0").mkdir(mode=0o700)
        os.chown(remote_home / "tmp" / f"{first.name}-0", 12345, 12345)
    else:
        first.rmdir()
        if taken == "a link":
            first.symlink_to(remote_home / "run")
        else:
            first.write_text("")
    other = places.live_folder()
    assert other is not None
    assert other != first
    assert other.parent == remote_home / "tmp"
    found = other.lstat()
    assert (found.st_uid, found.st_mode & 0o777) == (os.geteuid(), 0o700)
    assert places.live_folder() == other  # every process of this user finds it
    assert places.slow_recordings() is None


@pytest.mark.quick
def test_without_any_local_disk_the_data_folder_is_used(
    remote_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(remote_home / "home"))
    lines = (remote_home / "mountinfo").read_text()
    (remote_home / "mountinfo").write_text(f"{lines}\n24 22 0:23 / /var/tmp rw - nfs4 s:/t rw")
    assert places.recordings_folder() == remote_home / "home" / "tfguard" / "recordings"
    assert places.copies_folder() is None
    slow = places.slow_recordings()
    assert slow is not None
    assert "on a file system of type nfs4. Cells may wait for it." in slow
    [problem] = problems([], active=True, slow=slow)
    assert (problem["what"], problem["noted_at"]) == (slow, None)
    assert "TFGUARD_LIVE_DIR" in problem["fix"]
    results = check_data_folder(Environment.here())
    assert [r.status for r in results if slow in r.text] == [Status.WARNING]


@pytest.mark.quick
def test_a_local_data_folder_needs_no_copies(data_folder: Path) -> None:
    assert places.recordings_folder() == data_folder / "recordings"
    assert places.copies_folder() is None
    assert not data_folder.exists()  # asking makes nothing


def test_text_reaches_the_file_server_only_redacted_and_only_its_end(rig: Rig) -> None:
    secret = "tr0ub4dor" + "99"
    old = f"MY_PASSWORD={secret}-old\n" + "x" * FILE_BYTES
    new = "y" * KEPT_BYTES + f"\nlogin: MY_PASSWORD={secret}\nthe last line\n"
    folder = rig.recording.folder
    rig.recording.write_header({"starter_command": f"run --password {secret}"})
    for name, text in ((file_name(1), old), (file_name(2), new), ("fault.txt", f"pw={secret}")):
        folder.write_whole(name, text.encode())
    rig.sample(3)
    rig.copies.start()
    wait_until(lambda: (rig.copy / file_name(2)).exists(), "the copy of the text")
    wait_until(lambda: (rig.copy / "fault.txt").exists(), "the copy of the stacks")
    copied = {path.name: path.read_bytes() for path in rig.copy.iterdir()}
    assert file_name(1) not in copied
    assert len(copied[file_name(2)]) <= KEPT_BYTES
    assert b"MY_PASSWORD=[redacted]\nthe last line\n" in copied[file_name(2)]
    assert not [name for name, content in copied.items() if secret.encode() in content]
    assert read_recording(rig.copy).header["starter_command"] == "run --password [redacted]"
    # Text that is short is copied from both files.
    folder.write_whole(file_name(2), b"only this\n")
    wait_until(lambda: (rig.copy / file_name(1)).exists(), "the copy of the older text")
