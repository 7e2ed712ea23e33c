"""Who lives: the judgement for every combination of facts, and the lock of real processes and forked children."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
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
    Place,
    Verdict,
    judge,
    look_at_lock,
)
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from tests.record.alive_rig import Writer, linux

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
