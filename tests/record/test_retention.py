"""What is thrown away, what never is, and that several processes at it disturb nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.errors import BundleNotFound
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.record.bundle import READ, BundleStore, new_bundle_id
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.record.retention import Retention

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
    notebook_path: str | None = None,
) -> str:
    died = time.time() - age_seconds
    bundle_id = new_bundle_id(4711, died)
    bundle = {"id": bundle_id, "format": [1, 0], "filler": "x" * size_bytes}
    entry = {"id": bundle_id, "died_at": "2026-11-21T02:14:07.123Z"}
    entry |= {"kernel_id": bundle_id, "notebook_path": notebook_path, "cause": "host_oom"}
    store.save(bundle, entry, entry)
    return bundle_id


def prune(store: BundleStore, **limits: Any) -> list[str]:
    return Retention(store, **LIMITS | limits).prune()


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


def test_bundles_from_a_clock_that_ran_ahead_push_nothing_newer_out(store: BundleStore) -> None:
    ahead = [keep(store, -age * DAY) for age in (400, 300, 200)]
    now = keep(store, 5)
    assert set(prune(store, limit_count=2)) == set(ahead[1:])
    assert now in store.ids()


def test_a_name_with_a_month_13_breaks_nothing_and_goes_first(store: BundleStore) -> None:
    ids = [keep(store, age) for age in (30, 20, 10)]
    (store.root / "20261399-999999-1-abcd").mkdir(mode=0o700)
    assert "20261399-999999-1-abcd" in prune(store, limit_count=3)
    assert store.ids() == ids[::-1]


def test_a_crash_loop_does_not_push_out_the_reports_of_other_notebooks(store: BundleStore) -> None:
    others = [keep(store, 9000 - age) for age in range(7)]
    loop = [keep(store, 3000 - 60 * number, notebook_path="loop.ipynb") for number in range(20)]
    prune(store, limit_count=13)
    assert store.ids() == [*loop[:-6:-1], loop[0], *reversed(others)]
    prune(store, limit_count=10)  # when no run has a middle, the oldest go
    assert store.ids() == [*loop[:-6:-1], loop[0], *reversed(others[3:])]


def test_crashes_more_than_an_hour_apart_are_no_loop(store: BundleStore) -> None:
    ids = [keep(store, 4000 * age, notebook_path="often.ipynb") for age in range(10, 0, -1)]
    assert set(prune(store, limit_count=4)) == set(ids[:6])


def test_what_a_killed_writer_left_is_swept_and_a_living_one_s_is_not(store: BundleStore) -> None:
    keep(store)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    bundle_id = new_bundle_id(1, time.time())
    for pid in (dead.pid, os.getpid()):
        folder = store.root / f".{bundle_id}.{pid}"
        folder.mkdir(mode=0o700)
        (folder / "bundle.json").write_text("{")
        os.utime(folder, (time.time() - 120, time.time() - 120))
    other = store.root / ".not-ours"
    other.mkdir()
    prune(store)
    left = {path.name for path in store.root.iterdir() if path.name.startswith(".")}
    assert left == {f".{bundle_id}.{os.getpid()}", ".not-ours"}


def test_a_prune_with_nothing_to_do_looks_at_no_file_twice(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(20):
        keep(store, age)
    retention = Retention(store, **LIMITS)
    retention.prune()
    looked: list[str] = []
    monkeypatch.setattr(store, "size_bytes", lambda i: looked.append(i) or 1)
    monkeypatch.setattr(store, "entry", lambda i: looked.append(i) or {})
    newest = keep(store, 0)
    retention.prune()
    assert looked == [newest, newest]


def test_reading_what_was_removed_since_it_was_listed_is_not_found(store: BundleStore) -> None:
    bundle_id = keep(store)
    store.remove(bundle_id)
    for read in (store.entry, store.report, store.bundle, store.remove):
        with pytest.raises(BundleNotFound):
            read(bundle_id)
    with pytest.raises(BundleNotFound):
        store.mark(bundle_id, READ)
    assert os.listdir(store.root) == []  # nobody who looked made it anew


RACER = """
import itertools, json, sys, time
from pathlib import Path
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.errors import BundleNotFound, RecordUnreadable
from jupyter_tfguard.places import recordings_folder
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.record.bundle import READ, BundleStore
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.postmortem.handle import Postmortem

root, part, name, stop = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
store = BundleStore(root)
settings = TfGuard(bundle_limit_count=5)
postmortem = Postmortem(store.root.parent / "recordings", store, settings)
done = {"read": 0, "gone": 0, "bad": []}
(stop.parent / f"{name}.ready").touch()
while len(list(stop.parent.glob("*.ready"))) < 4:
    time.sleep(0.005)
for number in itertools.count():
    if number == 25 if part == "write" else stop.exists():
        break
    if part == "write":
        bundle = capture(identity=ProcessIdentity(1000 + number, 1), kernel_id=f"{name}-{number}")
        postmortem.report(bundle)
        Postmortem(recordings_folder(), store, settings).handle_unwatched()
    else:
        for bundle_id in store.ids():
            try:
                assert store.entry(bundle_id)["died_at"]
                assert store.report(bundle_id)["chips"] is not None
                if name == "marks" and number % 2:
                    store.mark(bundle_id, READ)
                done["read"] += 1
            except BundleNotFound:
                done["gone"] += 1
            except RecordUnreadable as bad:
                done["bad"].append(str(bad))
        done["read"] += len(store.entries())
print(json.dumps(done))
"""


def test_processes_that_write_prune_and_read_at_once_disturb_nobody(
    store: BundleStore, data_folder: Path
) -> None:
    mine = ProcessIdentity.of(os.getpid())
    assert mine is not None
    metrics = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)
    living = Recording(data_folder / "recordings", mine, {"kernel_id": "lives"}, metrics)
    try:
        stop = data_folder / "stop"
        parts = [("read", "marks"), ("read", "plain"), ("write", "a"), ("write", "b")]
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACER, str(store.root), *part, str(stop)],
                stdout=subprocess.PIPE,
                env=os.environ | {"TFGUARD_DIR": str(data_folder)},
            )
            for part in parts
        ]
        printed = [racer.communicate()[0] for racer in racers[2:]]
        stop.touch()
        printed += [racer.communicate()[0] for racer in racers[:2]]
        assert [racer.returncode for racer in racers] == [0] * len(parts)
        assert (living.folder.path / "header.json").exists()
    finally:
        living.close()
    done = [json.loads(text) for text in printed]
    assert [text for found in done for text in found["bad"]] == []
    assert all(found["read"] > 0 for found in done[2:])
    assert 5 <= len(store.ids()) <= 6  # the newest unread one may stay beyond the 5
    assert [n for n in os.listdir(store.root) if n.startswith(".")] == []
