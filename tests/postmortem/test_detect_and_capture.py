"""Which recordings become reports, what a bundle keeps, and that one crash makes one report."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.postmortem.capture import capture_orphan
from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity, boot_id
from jupyter_tfguard.record.recording import FORMAT, Recording

pytestmark = pytest.mark.quick

METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)


def dead_process() -> ProcessIdentity:
    """A process that has lived and ended."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity.of(child.pid)
    child.communicate(b"\n")
    assert identity is not None
    return identity


def record(root: Path, identity: ProcessIdentity, **header: Any) -> Recording:
    recording = Recording(
        root, identity, {"kernel_id": "k1", "notebook_path": "a.ipynb"} | header, METRICS
    )
    recording.event("cell_start", execution_count=3, head="password = 'hunter2x'")
    recording.sample(Sample(1, time.monotonic(), time.time(), {"process.rss_bytes": 5e8}))
    return recording


def age(folder: Path, seconds: float) -> None:
    """Make a recording look as if nothing had changed for so long."""
    long_ago = time.time() - seconds
    for path in (*folder.iterdir(), folder):
        os.utime(path, (long_ago, long_ago))


@pytest.fixture
def root(data_folder: Path) -> Path:
    return data_folder / "recordings"


def test_a_death_without_a_mark_is_found_once(root: Path) -> None:
    record(root, dead_process()).close()
    found = list(each_orphan(root))
    assert [orphan.contents.header["kernel_id"] for orphan in found] == ["k1"]
    assert list(each_orphan(root)) == []


def test_a_living_kernel_is_left_alone(root: Path) -> None:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    record(root, identity).close()
    assert list(each_orphan(root)) == []
    assert (root / identity.folder_name).is_dir()


def test_an_orderly_end_is_swept_away_without_a_report(root: Path) -> None:
    recording = record(root, dead_process())
    recording.end("shutdown_request")
    recording.close()
    assert list(each_orphan(root)) == []
    assert list(root.iterdir()) == []


def test_a_kernel_that_was_asked_to_end_and_then_killed_is_swept_away(root: Path) -> None:
    recording = record(root, dead_process())
    recording.event("exit_requested", how="shutdown_request", restart=False)
    recording.close()  # the manager lost its patience before the end was marked
    assert list(each_orphan(root)) == []
    assert list(root.iterdir()) == []


def test_quit_is_reported_even_where_the_end_was_not_marked(root: Path) -> None:
    recording = record(root, dead_process())
    recording.event("exit_requested", how="quit", restart=None)
    recording.close()
    assert len(list(each_orphan(root))) == 1


@pytest.mark.parametrize(
    ("used_bytes", "fault", "watched", "count"),
    [
        (1e9, b"", False, 0),
        (9e9, b"", False, 1),
        (1e9, b"Fatal", False, 1),
        (1e9, b"", True, 1),
    ],
)
def test_the_end_of_an_idle_kernel_is_a_crash_only_if_something_speaks_for_it(
    root: Path, used_bytes: float, fault: bytes, watched: bool, count: int
) -> None:
    identity = dead_process()
    metrics = (
        Metric("cgroup.used_bytes", "Used", Unit.BYTES, "memory.current"),
        Metric("cgroup.limit_bytes", "Limit", Unit.BYTES, "memory.max"),
    )
    recording = Recording(
        root, identity, {"watcher_pid": os.getpid() if watched else None}, metrics
    )
    recording.event("cell_start", execution_count=1)
    recording.event("cell_end", execution_count=1)
    values = {"cgroup.used_bytes": used_bytes, "cgroup.limit_bytes": 1e10}
    recording.sample(Sample(1, time.monotonic(), time.time(), values))
    if fault:
        recording.folder.write_whole("fault.txt", fault)
    recording.close()  # a client killed it, as nbclient does with shutdown_kernel="immediate"
    assert len(list(each_orphan(root))) == count
    assert len(list(root.iterdir())) == count


def test_a_pid_that_is_used_again_is_not_taken_for_the_kernel(root: Path) -> None:
    mine = ProcessIdentity.of(os.getpid())
    assert mine is not None
    earlier = ProcessIdentity(mine.pid, mine.start_time - 5)
    record(root, earlier).close()
    assert len(list(each_orphan(root))) == 1


def test_a_fresh_death_is_left_to_the_living_watcher(root: Path) -> None:
    watcher = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    recording = record(root, dead_process(), watcher_pid=watcher.pid)
    recording.close()
    assert list(each_orphan(root)) == []
    age(recording.folder.path, 60)
    assert len(list(each_orphan(root))) == 1
    watcher.communicate(b"\n")


def test_a_report_that_cannot_be_written_leaves_the_recording_for_later(
    root: Path, data_folder: Path
) -> None:
    recording = record(root, dead_process())
    recording.close()
    (data_folder / "bundles").write_text("in the way")
    store = BundleStore(data_folder / "bundles")
    assert Postmortem(root, store, TfGuard()).handle_unwatched() == []
    assert recording.folder.path.is_dir()
    (data_folder / "bundles").unlink()
    assert len(Postmortem(root, store, TfGuard()).handle_unwatched()) == 1
    assert list(root.iterdir()) == []


def test_secrets_and_escapes_are_gone_from_the_bundle(root: Path) -> None:
    recording = record(root, dead_process())
    folder = recording.folder
    folder.write_whole("stderr.0.txt", b"\x1b[31mtoken=abcdef123456\x1b[0m\nlast words\n")
    recording.close()
    (orphan,) = list(each_orphan(root))
    bundle = capture_orphan(orphan)
    text = json.dumps(bundle)
    assert "hunter2x" not in text
    assert "abcdef123456" not in text
    assert "\\u001b" not in text
    assert bundle["kernel"]["stderr_tail"][-1] == "last words"


def test_a_bundle_keeps_three_resolutions_of_what_the_kernel_recorded(root: Path) -> None:
    recording = Recording(root, dead_process(), {}, METRICS)
    began = time.time() - 5000
    for number in range(1, 5001):
        values = {"process.rss_bytes": 1e6 * number}
        recording.sample(Sample(number, 60_000.0 + number, began + number, values))
    recording.close()
    (orphan,) = list(each_orphan(root))
    bundle = json.loads(json.dumps(capture_orphan(orphan)))
    kernel = bundle["kernel"]
    assert bundle["format"] == [1, 1]
    assert len(kernel["samples"]["rows"]) == 1200
    assert kernel["samples"]["columns"] == ["time", "process.rss_bytes"]
    for name, count in (("seconds", 900), ("minutes", 83)):
        table = kernel[name]
        assert table["columns"] == ["time", "process.rss_bytes.min", "process.rss_bytes.max"]
        assert len(table["rows"]) == count
    _, lowest, highest = kernel["minutes"]["rows"][1]
    assert (lowest, highest) == (pytest.approx(60e6), pytest.approx(119e6))
    seen = Evidence(bundle)
    points = seen.timeline("process.rss_bytes")
    assert points[0].highest == pytest.approx(59e6)
    assert points[-1].highest == pytest.approx(5000e6)
    assert [p.time for p in points] == sorted(p.time for p in points)
    assert max(b.time - a.time for a, b in itertools.pairwise(points)) < 61


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "x"}', b"\xff" * 100, b"null"])
def test_a_damaged_header_makes_no_report_and_no_error(root: Path, content: bytes) -> None:
    recording = record(root, dead_process())
    recording.close()
    (recording.folder.path / "header.json").write_bytes(content)
    assert list(each_orphan(root)) == []


def test_a_newer_recording_is_left_for_a_newer_tfguard(root: Path) -> None:
    recording = record(root, dead_process(), format=[FORMAT[0] + 1, 0])
    recording.close()
    assert list(each_orphan(root)) == []
    assert recording.folder.path.is_dir()


def test_everything_damaged_but_the_header_still_makes_a_report(
    root: Path, data_folder: Path
) -> None:
    recording = record(root, dead_process())
    recording.close()
    for file in recording.folder.path.iterdir():
        if file.name != "header.json":
            file.write_bytes(os.urandom(5000))
    (entry,) = Postmortem(root, BundleStore(data_folder / "bundles"), TfGuard()).handle_unwatched()
    assert entry["cause"] == "unknown"


def test_the_boot_decides_when_the_machine_was_restarted(root: Path) -> None:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    record(root, identity, boot_id="another-boot").close()
    (orphan,) = list(each_orphan(root))
    assert boot_id() != "another-boot"
    assert not orphan.same_processes
    assert capture_orphan(orphan)["system_log"] is None


def test_a_recording_that_is_no_folder_is_a_sentence(tmp_path: Path) -> None:
    from jupyter_tfguard.errors import RecordUnreadable

    with pytest.raises(RecordUnreadable, match="There is no recording at"):
        read_recording(tmp_path / "nothing")
