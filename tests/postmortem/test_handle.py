"""What is kept and listed of crash loops, of many crashes, and of crashes that nobody watched."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.equal import folded
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.report import html

pytestmark = pytest.mark.quick

METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


def crash(kernel_id: str | None = "k1", died: float | None = None, **more: Any) -> dict[str, Any]:
    """The bundle of a kernel that SIGSEGV ended."""
    facts = ServerFacts(
        exit=ExitFacts(more.pop("signal", "SIGSEGV"), None, "waitid"),
        died=time.time() if died is None else died,
        kernel_alive=more.pop("alive", False),
    )
    identity = ProcessIdentity(more.pop("pid", 4711), 1)
    return capture(identity=identity, kernel_id=kernel_id, server=facts, **more)


def test_equal_crashes_are_one_entry_of_the_list(store: BundleStore) -> None:
    postmortem = Postmortem(store.root.parent / "recordings", store, TfGuard())
    now = time.time()
    alone = postmortem.report(crash("another", now - 50))
    equal = [postmortem.report(crash("k", now - 7200 + 1700 * number)) for number in range(4)]
    killed = postmortem.report(crash("k", now - 10, signal="SIGKILL"))
    child = postmortem.report(crash("k", now - 20, signal=None, alive=True))
    long_ago = postmortem.report(crash("k", now - 20_000))
    entries = store.entries()
    newest = equal[3]["id"]
    same = {entry["id"]: entry["same_as"] for entry in entries if entry["same_as"]}
    assert same == {entry["id"]: newest for entry in equal[:3]}
    rows = [(entry["id"], len(others)) for entry, others in folded(entries)]
    single = [(entry["id"], 0) for entry in (killed, child, alone)]
    assert rows == [*single, (newest, 3), (long_ago["id"], 0)]


def test_the_page_with_the_list_links_to_each_of_equal_crashes(store: BundleStore) -> None:
    postmortem = Postmortem(store.root.parent / "recordings", store, TfGuard())
    ids = [postmortem.report(crash(died=time.time() - 60 * number))["id"] for number in range(3)]
    page = html.render_list(store.entries(), lambda report_id: f"/report/{report_id}")
    assert page.count("<tr><td>") == 1
    assert "2 more like this" in page
    assert all(f'href="/report/{report_id}"' in page for report_id in ids)


def orphan(root: Path, number: int, **whose: str | None) -> None:
    """The recording of a kernel that ran before this boot."""
    header = {"kernel_id": f"k{number}", "boot_id": "another-boot"} | whose
    recording = Recording(root, ProcessIdentity(10_000 + number, 1), header, METRICS)
    recording.event("cell_start", execution_count=1, head=f"cell {number}")
    recording.close()
    long_ago = time.time() - 5000 + number
    for path in (*recording.folder.path.iterdir(), recording.folder.path):
        os.utime(path, (long_ago, long_ago))


def test_of_hundreds_of_orphans_the_newest_have_reports(
    store: BundleStore, data_folder: Path
) -> None:
    root = data_folder / "recordings"
    for number in range(30):
        orphan(root, number)
    assert len(Postmortem(root, store, TfGuard(report_limit_count=10)).handle_unwatched()) == 30
    kept = {store.entry(i)["kernel_id"] for i in store.ids()}
    assert kept == {f"k{number}" for number in range(20, 30)}
    assert os.listdir(root) == []


def test_kernels_of_unknown_id_and_notebook_have_a_report_each(
    store: BundleStore, data_folder: Path
) -> None:
    """papermill names neither; seven of its runs share the kernel's name."""
    root = data_folder / "recordings"
    for number in range(7):
        orphan(root, number, kernel_id=None, kernel_name="python3")
    assert len(Postmortem(root, store, TfGuard()).handle_unwatched()) == 7
    assert len(store.ids()) == 7
    assert len(folded(store.entries())) == 7
    assert os.listdir(root) == []
    assert Postmortem(root, store, TfGuard()).handle_unwatched() == []


def test_orphans_are_read_one_at_a_time(data_folder: Path) -> None:
    from jupyter_tfguard.postmortem.detect import each_orphan

    root = data_folder / "recordings"
    for number in range(5):
        orphan(root, number)
    found = each_orphan(root)
    assert next(found).contents.header["kernel_id"] == "k4"
    claimed = [name for name in os.listdir(root) if name.startswith("claimed-")]
    assert len(claimed) == 1
