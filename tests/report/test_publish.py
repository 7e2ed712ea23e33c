"""Who gets a report of their own, and who is counted: crash loops, deaths by the thousand, deaths nobody watched."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.record.bundle import ANNOUNCED, BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.report import markdown, text
from jupyter_tfguard.report.announce import announcement
from jupyter_tfguard.report.publish import Publisher, report_orphans
from jupyter_tfguard.report.wire import to_report
from jupyter_tfguard.shield import read_problems

pytestmark = pytest.mark.quick

METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


def death(kernel_id: str | None = "k1", died: float | None = None, **more: Any) -> dict[str, Any]:
    """The bundle of a kernel that SIGSEGV ended."""
    facts = ServerFacts(
        exit=ExitFacts(more.pop("signal", "SIGSEGV"), None, "waitid"),
        died=time.time() if died is None else died,
        kernel_alive=more.pop("alive", False),
    )
    identity = ProcessIdentity(more.pop("pid", 4711), 1)
    return capture(identity=identity, kernel_id=kernel_id, server=facts, **more)


def group_of(store: BundleStore) -> dict[str, Any]:
    (entry,) = [entry for entry in store.entries() if entry["group"]]
    return entry


def test_a_crash_loop_has_five_reports_and_one_exact_count(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    told = [publisher.publish(death()) for _ in range(100)]
    assert [entry["group"] is None for entry in told] == [True] * 5 + [False] * 95
    assert len(store.ids()) == 5
    entry = group_of(store)
    assert entry["group"]["deaths_count"] == 95
    assert entry["group"]["causes"] == [
        {
            "cause": "segfault_native",
            "short_title": "Segmentation fault in native code",
            "confidence": "certain",
            "count": 95,
        }
    ]
    # Each death is told with its own cause, and with the count it brought.
    assert {e["id"] for e in told[5:]} == {entry["id"]}
    assert [e["group"]["deaths_count"] for e in told[5:]] == list(range(1, 96))


def test_another_process_goes_on_where_one_stopped(store: BundleStore) -> None:
    for _ in range(3):
        Publisher(store, TfGuard()).publish(death())
    for _ in range(7):
        Publisher(store, TfGuard()).publish(death())
    assert len(store.ids()) == 5
    assert group_of(store)["group"]["deaths_count"] == 5


def test_ten_minutes_later_there_are_five_reports_more(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    start = time.time() - 3000
    for second in range(0, 1800, 20):
        publisher.publish(death(died=start + second))
    # 5 in each of three times ten minutes, all others in one group.
    assert len(store.ids()) == 15
    assert group_of(store)["group"]["deaths_count"] == 90 - 15


def test_a_loop_of_one_kernel_takes_nothing_from_another(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    for _ in range(9):
        publisher.publish(death("k1"))
    assert publisher.publish(death("k2"))["group"] is None


def test_killed_children_of_a_living_kernel_have_their_own_share(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    for _ in range(7):
        publisher.publish(death(alive=True, signal=None))
    assert publisher.publish(death())["group"] is None
    assert "lost child processes 2 more times" in group_of(store)["title"]


def test_reports_that_made_room_still_count_against_the_share(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard(bundle_limit_count=2))
    for _ in range(12):
        publisher.publish(death("loops"))
        publisher.publish(death(f"other-{time.time_ns()}"))
    assert len(store.ids()) == 2
    groups = [entry for entry in store.entries() if entry["group"]]
    loop = next(entry for entry in groups if entry["kernel_id"] == "loops")
    assert loop["group"]["deaths_count"] == 12 - 5


def test_a_report_that_has_to_make_room_at_once_is_counted(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard(bundle_limit_count=50))
    for number in range(200):
        publisher.publish(death(f"k{number}"))
    assert len(store.ids()) == 50
    entry = group_of(store)
    assert entry["group"]["deaths_count"] == 150
    assert entry["group"]["kernels_count"] == 150
    kept = {store.entry(i)["kernel_id"] for i in store.ids()}
    assert kept == {f"k{number}" for number in range(150, 200)}


def test_a_report_stands_though_those_that_made_room_cannot_be_counted(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard(bundle_limit_count=2))
    for number in range(2):
        publisher.publish(death(f"k{number}"))
    store.groups.root.write_text("in the way")
    told = publisher.publish(death("k2"))
    assert told["group"] is None
    assert {store.entry(i)["kernel_id"] for i in store.ids()} == {"k1", "k2"}
    (noted,) = read_problems()
    assert noted["place"] == "counting deaths whose reports made room"
    # One that is itself among them fails: it may be told another time.
    long_ago = death("k3", died=time.time() - 3000)
    with pytest.raises(FolderUnusable):
        publisher.publish(long_ago)
    store.groups.root.unlink()
    assert publisher.publish(long_ago)["group"]["deaths_count"] == 1


def test_a_report_that_had_its_days_goes_without_a_word(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard(bundle_limit_count=2))
    for hours in (30, 20, 10, 0):
        publisher.publish(death(f"k{hours}", died=time.time() - 3600 * hours))
    assert len(store.ids()) == 2
    assert [entry for entry in store.entries() if entry["group"]] == []


def test_a_death_is_counted_by_its_cause_without_its_recording(store: BundleStore) -> None:
    entry = Publisher(store, TfGuard()).count(death(signal="SIGKILL"))
    assert (entry["cause"], entry["group"]["one_kernel"]) == ("sigkill_unattributed", False)
    assert store.ids() == []


def test_the_grouped_report_reads_in_every_form(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    for number in range(12):
        signal = "SIGKILL" if number % 4 == 0 else "SIGSEGV"
        publisher.publish(death(signal=signal, notebook_path="dir/train.ipynb"))
    entry = group_of(store)
    report = store.report(entry["id"])
    single = death()
    assert set(report) == set(to_report(single, diagnose(single))) | {"unread"}
    printed = text.render(report)
    flat = " ".join(printed.split())
    for words in (
        "This kernel died 7 more times in",
        "6 × Segmentation fault in native code, 1 × Killed, sender unknown",
        "dir/train.ipynb",
        "7 deaths of 1 kernel between",
        "Shut the kernel down",
        "What each kernel was doing",
    ):
        assert words in flat
    assert "7 more times" in markdown.render(report).replace("\\", "")


def test_the_json_has_the_shape_that_the_front_end_is_tested_with(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    for _ in range(7):
        publisher.publish(death())
    publisher.count(death("another"))
    wire = Path(__file__).parents[1] / "wire" / "crashes.json"
    samples = [e for e in json.loads(wire.read_text())["crashes"] if e.get("group")]
    made = [entry for entry in store.entries() if entry["group"]]
    assert len(samples) == len(made) == 2
    for entry in made:
        (sample,) = [e for e in samples if e["group"]["one_kernel"] is entry["group"]["one_kernel"]]
        assert entry.keys() - {"announced"} == sample.keys()
        assert entry["group"].keys() == sample["group"].keys()
        assert entry["group"]["causes"][0].keys() == sample["group"]["causes"][0].keys()
        assert (entry["kernel_id"] is None) == (sample["kernel_id"] is None)


def test_the_next_kernel_tells_of_the_loop_once(store: BundleStore) -> None:
    publisher = Publisher(store, TfGuard())
    for _ in range(8):
        publisher.publish(death())
    first, second = announcement(store, "k1", None)
    assert "died again and again, last at" in first
    assert "3 × Segmentation fault in native code (certain)." in first
    assert second.endswith("More: %tfguard why")
    assert announcement(store, "k1", None) == []
    publisher.publish(death())
    assert announcement(store, "k1", None) != []
    store.mark(group_of(store)["id"], ANNOUNCED)


# --- deaths that nobody watched


def orphan(root: Path, number: int, *, kernel_id: str | None = None) -> None:
    """The recording of a kernel that ran before this boot."""
    header = {"kernel_id": kernel_id or f"k{number}", "boot_id": "another-boot"}
    recording = Recording(root, ProcessIdentity(10_000 + number, 1), header, METRICS)
    recording.event("cell_start", execution_count=1, head=f"cell {number}")
    recording.close()
    long_ago = time.time() - 5000 + number
    for path in (*recording.folder.path.iterdir(), recording.folder.path):
        os.utime(path, (long_ago, long_ago))


def test_of_hundreds_of_orphans_the_newest_have_reports_and_the_others_are_counted(
    store: BundleStore, data_folder: Path
) -> None:
    root = data_folder / "recordings"
    for number in range(30):
        orphan(root, number)
    told = report_orphans(root, store, TfGuard(bundle_limit_count=10))
    assert len(told) == 30
    kept = {store.entry(i)["kernel_id"] for i in store.ids()}
    assert kept == {f"k{number}" for number in range(20, 30)}
    group = group_of(store)["group"]
    assert (group["deaths_count"], group["kernels_count"]) == (20, 20)
    assert os.listdir(root) == []


def test_an_unwatched_loop_is_one_group(store: BundleStore, data_folder: Path) -> None:
    root = data_folder / "recordings"
    for number in range(12):
        orphan(root, number, kernel_id="loops")
    report_orphans(root, store, TfGuard())
    assert len(store.ids()) == 5
    entry = group_of(store)
    assert (entry["kernel_id"], entry["group"]["deaths_count"]) == ("loops", 7)
    assert report_orphans(root, store, TfGuard()) == []


def test_orphans_are_read_one_at_a_time(data_folder: Path) -> None:
    from jupyter_tfguard.postmortem.detect import each_orphan

    root = data_folder / "recordings"
    for number in range(5):
        orphan(root, number)
    found = each_orphan(root)
    assert next(found).contents.header["kernel_id"] == "k4"
    claimed = [name for name in os.listdir(root) if name.startswith("claimed-")]
    assert len(claimed) == 1
