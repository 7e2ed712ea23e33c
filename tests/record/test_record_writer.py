"""The writer of records: full disks, threads, signal handlers; a forked process writes nothing."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from jupyter_tfguard.record.record_writer import RecordWriter
from jupyter_tfguard.record.records import (
    HEADER_BYTES,
    read_records,
)
from tests.record.records_rig import numbers, opened, written
from tests.rigs.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    "sizes",
    [{"record_bytes": 48}, {"record_bytes": 32}, {"record_bytes": 8192}, {"capacity": 0}],
)
def test_sizes_that_the_reader_would_refuse_are_not_written(
    tmp_path: Path, sizes: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="record"):
        opened(tmp_path / "ring", **sizes)


def test_a_payload_too_long_is_refused_and_nothing_is_overwritten(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring", capacity=1)
    writer.write(3, b"x" * 32)
    with pytest.raises(ValueError, match="do not fit"):
        writer.write(3, b"x" * 33)
    assert numbers((tmp_path / "ring").read_bytes()) == [1]
    writer.close()


def test_a_file_that_grows_has_reserved_what_it_writes_to(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    writer = opened(path, record_bytes=1024, capacity=10, grow_bytes=4096)
    sizes = [path.stat().st_size]
    for number in range(1, 21):
        writer.write(3, b"%d" % number)
        sizes.append(path.stat().st_size)
    writer.close()
    steps = [0, *4 * [4096], *4 * [8192], *12 * [10240]]
    assert sizes == [HEADER_BYTES + step for step in steps]
    assert numbers(path.read_bytes()) == list(range(11, 21))


def test_a_full_disk_is_met_when_the_file_is_made_not_at_a_record() -> None:
    with pytest.raises(OSError, match=r"\[Errno"):
        RecordWriter(Path("/dev/full"), name="x", record_bytes=64, capacity=8, types={})


def test_a_short_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = opened(tmp_path / "ring")
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, content, at: real(fd, content[:20], at))
    with pytest.raises(OSError, match="only 20 of 64 bytes") as caught:
        writer.write(3, b"abc")
    assert caught.value.errno == errno.ENOSPC
    writer.close()


def test_a_file_system_that_cannot_reserve_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert numbers(written(tmp_path / "ring", 9, grow_bytes=128)) == list(range(2, 10))


def test_without_pwrite_and_fallocate_it_is_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pwrite")
    monkeypatch.delattr(os, "posix_fallocate")
    assert numbers(written(tmp_path / "ring", 9)) == list(range(2, 10))


def test_a_closed_writer_writes_nothing(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring")
    writer.write(3, b"abc")
    writer.close()
    writer.write(3, b"def")
    assert numbers((tmp_path / "ring").read_bytes()) == [1]


def test_between_two_writes_no_descriptor_is_open(tmp_path: Path) -> None:
    """Of the guard's five or six files: user code may need all descriptors, or close those of others, as daemons do."""
    before = os.listdir("/proc/self/fd")
    writer = opened(tmp_path / "ring")
    writer.write(3, b"abc")
    assert os.listdir("/proc/self/fd") == before
    assert numbers((tmp_path / "ring").read_bytes()) == [1]


def test_records_wait_while_no_descriptor_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(tmp_path / "ring")

    def none_free(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", none_free)
    writer.write(3, b"first")
    writer.write(3, b"second")
    monkeypatch.undo()
    assert numbers((tmp_path / "ring").read_bytes()) == []
    writer.write(3, b"third")
    assert numbers((tmp_path / "ring").read_bytes()) == [1, 2, 3]


def test_a_deleted_file_is_an_error_and_is_not_made_again(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring")
    (tmp_path / "ring").unlink()
    with pytest.raises(FileNotFoundError):
        writer.write(3, b"abc")
    assert not (tmp_path / "ring").exists()


def test_threads_write_beside_each_other(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring", capacity=4096, grow_bytes=4096)
    writing = [
        threading.Thread(target=lambda: [writer.write(3, b"x") for _ in range(500)])
        for _ in range(8)
    ]
    for thread in writing:
        thread.start()
    for thread in writing:
        thread.join()
    writer.close()
    assert numbers((tmp_path / "ring").read_bytes()) == list(range(1, 4001))


def test_sequences_in_a_row_are_nobody_elses(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring", capacity=8)
    taken: list[int] = []

    def take() -> None:
        for _ in range(2000):
            first = writer.next_sequences(3)
            taken.extend(range(first, first + 3))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    writer.close()
    assert len(set(taken)) == len(taken) == 4 * 2000 * 3


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_child(body: Callable[[], None]) -> int:
    """Exit status of a forked process that runs `body`; it is killed when that hangs."""
    pid = os.fork()
    if not pid:
        signal.alarm(10)
        try:
            body()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_writes_nothing_though_a_thread_held_the_lock(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring")
    writer.write(3, b"parent")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with writer._lock:
            held.set()
            done.wait(DEADLINE_SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(DEADLINE_SECONDS)

    def child() -> None:
        writer.write(3, b"child")
        writer.close()

    status = in_child(child)
    done.set()
    thread.join()
    assert status == 0
    writer.write(3, b"parent")
    writer.close()
    found = read_records((tmp_path / "ring").read_bytes()).records
    assert [r.payload for r in found] == [b"parent", b"parent"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_a_signal_handler_may_write_inside_a_write(tmp_path: Path) -> None:
    writer = opened(tmp_path / "ring", capacity=8192)
    by_handler = 0
    is_due = True  # once for each record of the loop at most: the file keeps a limited number

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal by_handler, is_due
        if not is_due:
            return
        is_due = False
        writer.write(3, b"handler")
        by_handler += 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(4000):
            is_due = True
            writer.write(3, b"cell")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    writer.close()
    found = read_records((tmp_path / "ring").read_bytes()).records
    assert sum(r.payload == b"cell" for r in found) == 4000
    assert sum(r.payload == b"handler" for r in found) == by_handler > 0
