"""The way of native text to its reader, alone: it never waits, and what does not fit leaves a line and its end."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from jupyter_tfguard.record.outlet import TAIL_BYTES, WAITING_BYTES, Outlet, gap_note

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")


@pytest.fixture
def pipe() -> tuple[int, int]:
    return os.pipe()


def drain(outlet: Outlet, reading: int) -> bytes:
    """Everything that comes out, while a reader reads."""
    found: list[bytes] = []

    def read() -> None:
        while chunk := os.read(reading, 1 << 20):
            found.append(chunk)

    thread = threading.Thread(target=read)
    thread.start()
    outlet.flush(20)
    outlet.close()
    os.close(outlet.descriptor)
    thread.join()
    os.close(reading)
    return b"".join(found)


def test_text_that_fits_is_passed_on_unchanged(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    text = os.urandom(WAITING_BYTES)
    outlet.put(text[:1000])
    outlet.put(text[1000:])
    assert outlet.room == 0
    assert drain(outlet, pipe[0]) == text
    assert outlet.dropped_bytes == 0


def test_what_does_not_fit_leaves_a_line_and_its_end(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    outlet.put(b"a" * WAITING_BYTES)
    for letter in (b"b", b"c", b"d"):
        outlet.put(letter * TAIL_BYTES)
    assert outlet.dropped_bytes == 2 * TAIL_BYTES
    passed = drain(outlet, pipe[0])
    assert passed == b"a" * WAITING_BYTES + gap_note(2 * TAIL_BYTES) + b"d" * TAIL_BYTES
    assert outlet.dropped_bytes == 2 * TAIL_BYTES


def test_text_between_two_gaps_is_passed_on_when_there_is_room(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    outlet.drop(4)
    outlet.put(b"one")
    outlet.drop(5)
    outlet.drop(6)
    outlet.put(b"two")
    assert drain(outlet, pipe[0]) == gap_note(4) + b"one" + gap_note(11) + b"two"
    assert outlet.dropped_bytes == 15


def test_a_gap_that_is_reported_takes_the_text_before_it_along(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    outlet.put(b"a" * WAITING_BYTES)
    outlet.put(b"b" * 10)
    outlet.drop(90)
    outlet.put(b"c" * 10)
    assert drain(outlet, pipe[0]) == b"a" * WAITING_BYTES + gap_note(100) + b"c" * 10
    assert outlet.dropped_bytes == 100


def test_sending_never_waits(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    outlet.put(b"x" * 500_000)
    began = time.monotonic()
    outlet.send()
    assert time.monotonic() - began < 1
    assert outlet.waiting
    assert os.get_blocking(pipe[1])
    os.close(pipe[0])
    outlet.send()
    assert not outlet.waiting
    outlet.put(b"nobody reads")
    assert not outlet.waiting
    outlet.close()
    os.close(pipe[1])


def test_a_socket_is_not_waited_for_either() -> None:
    import socket

    ours, theirs = socket.socketpair()
    outlet = Outlet(ours.fileno())
    outlet.put(b"x" * 3_000_000)
    outlet.send()
    assert outlet.waiting
    found = b""
    while len(found) < 3_000_000:
        found += theirs.recv(1 << 20)
        outlet.send()
    assert found == b"x" * 3_000_000
    outlet.close()
    ours.close()
    theirs.close()


def test_a_regular_file_gets_its_text_at_its_own_position(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"before\n")
    outlet = Outlet(descriptor)
    outlet.put(b"text\n" * 100_000)
    outlet.send()
    os.write(descriptor, b"after\n")
    outlet.close()
    os.close(descriptor)
    assert (tmp_path / "log").read_bytes() == b"before\n" + b"text\n" * 100_000 + b"after\n"
