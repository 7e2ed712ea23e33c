"""Which reports are removed when there are too many, and which never are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.errors import BundleNotFound
from jupyter_tfguard.record import retention
from jupyter_tfguard.record.bundle import READ, BundleStore, new_bundle_id

pytestmark = pytest.mark.quick

DAY = 86400.0
LIMITS: dict[str, Any] = {"limit_count": 50, "limit_bytes": 64 << 20, "limit_days": 14.0}


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


def keep(
    store: BundleStore,
    age_seconds: float = 60.0,
    size_bytes: int = 10,
) -> str:
    died = time.time() - age_seconds
    bundle_id = new_bundle_id(4711, died)
    bundle = {"id": bundle_id, "format": [1, 0], "filler": "x" * size_bytes}
    entry = {"id": bundle_id, "crashed_at": "2026-11-21T02:14:07.123Z"}
    entry |= {"kernel_id": bundle_id, "cause": "host_oom"}
    store.save(bundle, entry, entry)
    return bundle_id


def prune(store: BundleStore, **limits: Any) -> list[str]:
    """Ids of the reports that were removed, newest first."""
    before = store.ids()
    retention.prune(store, **LIMITS | limits)
    return [found for found in before if found not in store.ids()]


def test_the_oldest_go_when_there_are_too_many(store: BundleStore) -> None:
    ids = [keep(store, age) for age in (50, 40, 30, 20, 10)]
    assert set(prune(store, limit_count=3)) == set(ids[:2])
    assert store.ids() == ids[:1:-1]


def test_the_oldest_go_when_they_are_too_big(store: BundleStore) -> None:
    ids = [keep(store, age, size_bytes=400_000) for age in (40, 30, 20, 10)]
    assert set(prune(store, limit_bytes=1_000_000)) == set(ids[:2])


def test_the_old_go_when_their_days_are_over(store: BundleStore) -> None:
    old, new = keep(store, 15 * DAY), keep(store, 13 * DAY)
    assert prune(store) == [old]
    assert store.ids() == [new]


def test_the_newest_unread_one_stays_however_old_and_big_it_is(store: BundleStore) -> None:
    unread = [keep(store, 100 * DAY, 3_000_000), keep(store, 90 * DAY, 3_000_000)]
    read = [keep(store, age) for age in (20, 10)]
    for bundle_id in read:
        store.mark(bundle_id, READ)
    prune(store, limit_count=1, limit_bytes=1_000_000)
    # Of the unread the newer one; of the read the one that fits.
    assert store.ids() == [read[1], unread[1]]


def test_what_a_killed_writer_left_is_swept_and_a_fresh_one_is_not(store: BundleStore) -> None:
    keep(store)
    bundle_id = new_bundle_id(1, time.time())
    for pid, age_seconds in ((1, 120), (2, 7200)):
        folder = store.root / f".{bundle_id}.{pid}"
        folder.mkdir(mode=0o700)
        (folder / "bundle.json").write_text("{")
        os.utime(folder, (time.time() - age_seconds,) * 2)
    other = store.root / ".not-ours"
    other.mkdir()
    prune(store)
    left = {path.name for path in store.root.iterdir() if path.name.startswith(".")}
    assert left == {f".{bundle_id}.1", ".not-ours"}


def test_reading_what_was_removed_since_it_was_listed_is_not_found(store: BundleStore) -> None:
    bundle_id = keep(store)
    store.remove(bundle_id)
    for read in (store.entry, store.report, store.bundle, store.remove):
        with pytest.raises(BundleNotFound):
            read(bundle_id)
    with pytest.raises(BundleNotFound):
        store.mark(bundle_id, READ)
    assert os.listdir(store.root) == []  # nobody who looked made it anew


def test_a_report_with_the_fields_of_an_earlier_version_is_read(store: BundleStore) -> None:
    bundle_id = new_bundle_id(4711, 1_795_227_247.0)
    old = {"id": bundle_id, "died_at": "2026-11-21T02:14:07.123Z"}
    report = old | {"native_tail": ["Killed"], "memory": {"died": 1.0}}
    store.save({"id": bundle_id, "format": [1, 0], "identity": {"died": 1.0}}, report, old)
    assert store.entry(bundle_id)["crashed_at"] == old["died_at"]
    read = store.report(bundle_id)
    assert (read["stderr_tail"], read["memory"]) == (["Killed"], {"crash_time": 1.0})
    assert store.bundle(bundle_id)["identity"] == {"died": 1.0}
