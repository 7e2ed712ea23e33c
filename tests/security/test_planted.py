"""A link or a pipe at every path of ours: nothing hangs, and nothing behind a link is touched."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.errors import TfGuardError
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.private_files import remove_folder
from jupyter_tfguard.record.bundle import READ, BundleStore
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity, boot_id
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.watch.live.live import LiveReader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes and devices of Linux")

# No process has it: Linux gives none above 4194304.
GONE = ProcessIdentity(4_194_305, 42)
METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, source="VmRSS"),)
BUNDLE = "20200101-000000-4711-abcd"
FILES = (
    "header.json", "samples.ring", "seconds.ring", "minutes.ring", "events.ring", "progress.ring", "stderr.0.txt",
    "fault.txt", "signal-SIGTERM.txt", "end.json", "alive.lock",
)  # fmt: skip
PATHS = (
    ".", "problems.jsonl", "recordings", f"recordings/{GONE.folder_name}",
    *(f"recordings/{GONE.folder_name}/{name}" for name in FILES),
    "bundles", f"bundles/{BUNDLE}", "bundles/groups", "bundles/.lock",
    *(f"bundles/{BUNDLE}/{name}" for name in ("bundle.json", "report.json", "entry.json", READ)),
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    def hung(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("it hung on something planted")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def everything(data: Path) -> None:
    """What recorder, watcher, reporter, lists and sweepers do in the folder; refusals are sentences."""
    refused = contextlib.suppress(TfGuardError, OSError)
    root = data / "recordings"
    with refused:
        recording = Recording(
            root, GONE, {"kernel_id": "k", "boot_id": boot_id(), "parent_pid": 1}, METRICS
        )
        recording.event("cell_start", execution_count=1, head="x", cell_id=None, rss_bytes=1)
        recording.sample(Sample(1, 1.0, 1.0, {"process.rss_bytes": 1e9}))
        recording.set_progress({"what": "fit"})
        recording.write_header({"more": 1})
        recording.close()
    shield._noted.clear()
    shield.note_problem("a test", "something failed")
    shield.read_problems()
    with refused:
        read_recording(root / GONE.folder_name)
    live = LiveReader(root / GONE.folder_name)
    with refused:
        live.read()
    live.close()
    store = BundleStore(data / "bundles")
    with refused:
        Postmortem(root, store, TfGuard()).handle_unwatched()
    with refused:
        store.entries()
    for bundle_id in (BUNDLE, *store.ids()):
        for ask in (store.entry, store.report, store.bundle, store.size_bytes):
            with refused:
                ask(bundle_id)
        with refused:
            store.mark(bundle_id, READ)
        with refused:
            store.remove(bundle_id)
    remove_folder(root / GONE.folder_name)


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe"])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_planted_is_followed_or_waited_for(
    data_folder: Path, tmp_path: Path, path: str, kind: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("precious")
    planted = data_folder / path
    planted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(planted)  # no reader: a usual open blocks
    else:
        planted.symlink_to(elsewhere if kind == "link to a folder" else elsewhere / "file")
    descriptors = len(os.listdir("/proc/self/fd"))
    everything(data_folder)
    assert os.listdir(elsewhere) == ["file"]
    assert (elsewhere / "file").read_text() == "precious"
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_where_nothing_is_planted_all_of_it_works(data_folder: Path) -> None:
    """The same steps, so that the test above does not pass because nothing is ever done."""
    store = BundleStore(data_folder / "bundles")
    recording = Recording(data_folder / "recordings", GONE, {"boot_id": boot_id()}, METRICS)
    recording.event("cell_start", execution_count=1, head="x", cell_id=None, rss_bytes=1)
    recording.close()
    [entry] = Postmortem(data_folder / "recordings", store, TfGuard()).handle_unwatched()
    assert store.report(entry["id"])["cause"] == "unknown"
    assert list((data_folder / "recordings").iterdir()) == []
