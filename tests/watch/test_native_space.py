"""Native text of a kernel whose thread cannot run: the watcher gives its disk space back."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.native_text import give_space_back
from jupyter_tfguard.record.outlet import WAITING_BYTES
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.watch.live_feed import LiveFeed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holes are punched on Linux")

LONG = 3 * WAITING_BYTES


class _Witness(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.mark.parametrize("busy", [True, False])
def test_the_watcher_gives_the_space_of_a_busy_kernel_back(tmp_path: Path, busy: bool) -> None:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    recording = Recording(tmp_path, identity, {}, ())
    text = b"".join(b"%015d\n" % n for n in range(LONG // 16))
    native = recording.folder.path / "stderr.1.txt"
    native.write_bytes(text)
    native.chmod(0o600)
    kernel = SimpleNamespace(heard_count=lambda: None)
    witness = _Witness(
        identity=identity, is_busy=busy, live=None, kernel=kernel, latest=None, peak_bytes=None
    )
    feed = LiveFeed(tmp_path, lambda: cast(Any, (witness,)))
    feed.start()
    try:
        end = time.monotonic() + (20 if busy else 2)
        while native.stat().st_blocks * 512 >= 2 * WAITING_BYTES and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        feed.stop()
    assert (native.stat().st_blocks * 512 < 2 * WAITING_BYTES) == busy
    assert native.stat().st_size == LONG
    assert native.read_bytes()[:WAITING_BYTES] == text[:WAITING_BYTES]
    assert read_recording(recording.folder.path).stderr_tail == text[-65536:].decode()
    recording.remove()


def test_a_file_of_just_twice_what_waits_is_bounded_too(tmp_path: Path) -> None:
    native = tmp_path / "stderr.1.txt"
    native.write_bytes(os.urandom(2 * WAITING_BYTES))
    native.chmod(0o600)
    tmp_path.chmod(0o700)
    with PrivateFolder(tmp_path) as folder:
        give_space_back(folder)
    assert native.stat().st_blocks * 512 < 2 * WAITING_BYTES
