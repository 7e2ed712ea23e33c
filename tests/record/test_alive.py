"""Who lives: the judgement for every combination of facts, and real processes, pid namespaces and forked children."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.postmortem.detect import orphans
from jupyter_tfguard.record import alive
from jupyter_tfguard.record.alive import (
    FRESH_SECONDS,
    JudgedBy,
    LifeFacts,
    Lock,
    Looker,
    Place,
    Verdict,
    judge,
    look_at_lock,
)
from jupyter_tfguard.record.claims import Claimed, claim
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

linux = pytest.mark.skipif(sys.platform != "linux", reason="pid namespaces and procfs are Linux's")

# A kernel's recorder and nothing else. Told on stdin to go on, it says what it did on stdout.
WRITER = """
import json, os, sys
from pathlib import Path
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
me = ProcessIdentity.of(os.getpid())
metrics = [Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm")]
recording = Recording(Path(sys.argv[1]), me, json.loads(sys.argv[2]), metrics)
recording.event("cell_start", execution_count=1, head="x")
print(me.folder_name, flush=True)
exec(sys.stdin.readline())
"""
WAIT = "sys.stdin.read()"


class Writer:
    """A process that records below `root`; in a pid namespace of its own if asked."""

    def __init__(
        self, root: Path, then: str = WAIT, *, header: str = "{}", namespace: bool = False
    ) -> None:
        front = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] if namespace else []
        self.process = subprocess.Popen(
            [*front, sys.executable, "-c", WRITER, str(root), header],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{then}\n")
        self.process.stdin.flush()
        self.path = root / self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def identity(self) -> ProcessIdentity:
        found = ProcessIdentity.from_folder_name(self.path.name)
        assert found is not None
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def writers() -> Iterator[list[Writer]]:
    made: list[Writer] = []
    yield made
    for writer in made:
        writer.close()


@pytest.fixture
def root(data_folder: Path) -> Path:
    return data_folder / "recordings"


def namespaces_work() -> bool:
    """True where this user may make a pid namespace."""
    if shutil.which("unshare") is None:
        return False
    made = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False
    )
    return made.returncode == 0


def age(folder: Path, seconds: float) -> None:
    """Make a recording look as if nothing had changed for so long."""
    long_ago = time.time() - seconds
    for path in (*folder.iterdir(), folder):
        os.utime(path, (long_ago, long_ago))


def wait_for_lock(path: Path, state: Lock) -> None:
    ends = time.monotonic() + 10
    while look_at_lock(path) is not state:
        assert time.monotonic() < ends, f"the lock of {path} is not {state}"
        time.sleep(0.02)


# --- the judgement


def every_case() -> Iterator[LifeFacts]:
    silent = (0.0, FRESH_SECONDS - 1, FRESH_SECONDS + 1)
    yield from itertools.starmap(
        LifeFacts,
        itertools.product((True, False, None), (True, False), Lock, (True, False), silent),
    )


@pytest.mark.quick
@pytest.mark.parametrize("facts", list(every_case()), ids=str)
def test_the_judgement_of_every_combination_of_facts(facts: LifeFacts) -> None:
    verdict = judge(facts)
    if facts.lock is Lock.HELD or facts.runs:
        assert verdict.alive
    elif facts.runs is False and facts.same_host:
        assert verdict == Verdict(False, JudgedBy.PROCESS)
    elif facts.lock is Lock.FREE and facts.lock_counts:
        assert verdict == Verdict(False, JudgedBy.LOCK)
    else:
        # Nothing is known: never dead before it was silent for the stated time, and then by silence alone.
        assert verdict == Verdict(facts.silent_seconds < FRESH_SECONDS, JudgedBy.SILENCE)


@pytest.mark.quick
def test_a_place_is_told_by_all_its_parts() -> None:
    here = Place.here()
    others = [
        Place("other", here.boot_id, here.pid_namespace),
        Place(here.host, "other", here.pid_namespace),
        Place(here.host, here.boot_id, "pid:[1]"),
    ]
    assert len({place.key for place in (here, *others)}) == 4
    assert [here.sees_processes_of(place) for place in others] == [True, False, False]
    assert not Place.of({}).sees_processes_of(here)
    assert Place.of({"host": 5, "boot_id": [], "pid_namespace": None}).key


# --- the lock


@linux
def test_the_lock_is_held_while_the_process_lives_and_free_after_sigkill(
    root: Path, writers: list[Writer]
) -> None:
    writers.append(writer := Writer(root))
    assert look_at_lock(writer.path) is Lock.HELD
    writer.kill()
    assert look_at_lock(writer.path) is Lock.FREE


@linux
def test_a_forked_child_that_outlives_the_kernel_does_not_keep_the_lock(
    root: Path, writers: list[Writer]
) -> None:
    survive = (
        "pid = os.fork(); print(pid, flush=True) if pid else None; import time; time.sleep(60)"
    )
    writers.append(writer := Writer(root, survive))
    child = int(writer.read())
    assert look_at_lock(writer.path) is Lock.HELD
    writer.kill()
    try:
        assert look_at_lock(writer.path) is Lock.FREE
        os.kill(child, 0)  # it lives
        assert [orphan.identity for orphan in orphans(root)] == [writer.identity()]
    finally:
        os.kill(child, signal.SIGKILL)


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
    assert look_at_lock(writer.path) is Lock.FREE
    assert orphans(root) == []  # here its process speaks for it
    assert writer.process.stdin is not None
    writer.process.stdin.write("\n")
    writer.process.stdin.flush()
    assert writer.read() == "sampled"
    assert look_at_lock(writer.path) is Lock.HELD


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
    with pytest.raises(FolderUnusable, match="belongs to another kernel"):
        Recording(root, writer.identity(), {"kernel_id": "another"}, ())
    assert {path.name: path.read_bytes() for path in writer.path.iterdir()} == before


@pytest.mark.quick
def test_without_locks_no_file_is_left_that_would_read_as_a_death(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "fcntl", None)
    recording = Recording(root, ProcessIdentity(7, 7), {}, ())
    assert not (recording.folder.path / alive.LOCK).exists()
    recording.close()
    assert look_at_lock(recording.folder.path) is Lock.UNKNOWN


# --- other machines and containers


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
