"""Reports in memory: how many, which marks they keep, and what another process makes of the same crash."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.kernel.news import News
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import ANNOUNCED, READ, BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts, SystemLog
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.record.unsaved import KEPT_LIMIT, BackedStore
from jupyter_tfguard.watch.crash.crash import Crash
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.quick

METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)


@pytest.fixture
def in_the_way(data_folder: Path) -> Path:
    """A file where the folder of the reports should be."""
    data_folder.mkdir(mode=0o700)
    path = data_folder / "bundles"
    path.write_text("")
    return path


def save(store: BundleStore, number: int) -> str:
    report_id = f"20261127-1200{number:02}-4711-0123abcd"
    bundle: dict[str, Any] = {"format": [1, 1], "id": report_id}
    store.save(bundle, {"title": f"{number}"}, {"cause": "unknown", "id": report_id})
    return report_id


def test_the_newest_are_kept_in_memory_and_saved_with_their_marks(in_the_way: Path) -> None:
    store = BackedStore(in_the_way)
    ids = [save(store, number) for number in range(KEPT_LIMIT + 3)]
    assert store.ids() == ids[:2:-1]
    with pytest.raises(FolderUnusable):
        save(store, 0)  # older than all that are kept
    newest = ids[-1]
    store.mark(newest, READ)
    store.mark(newest, ANNOUNCED)
    assert [store.entry(newest)[name] for name in ("unread", "announced")] == [False, True]
    assert "Set TFGUARD_DIR" in store.report(newest)["unsaved"]
    assert store.remove(ids[-2])
    in_the_way.unlink()
    assert store.save_kept()
    assert store.unsaved() == []
    assert store.ids() == BundleStore(in_the_way).ids() == [newest, *ids[-3:2:-1]]
    entry = BundleStore(in_the_way).entry(newest)
    assert [entry[name] for name in ("unread", "announced")] == [False, True]
    assert "unsaved" not in store.entry(newest)


def dead_kernel(root: Path) -> Crash:
    """A kernel that SIGKILL ended, with its recording."""
    identity = ProcessIdentity(2**22 - 7, 1)
    recording = Recording(root, identity, {"kernel_id": "k", "watcher_pid": os.getppid()}, METRICS)
    recording.event("exit_requested", how="shutdown")
    recording.close()
    facts = ServerFacts(exit=ExitFacts("SIGKILL", None, "waitid"), died=time.time() - 5)
    return Crash(identity, "k", "python3", "a.ipynb", recording.folder.path, facts, SystemLog(True))


def test_the_next_process_reports_at_once_what_a_server_saw(in_the_way: Path) -> None:
    root = in_the_way.with_name("recordings")
    failures: list[str | None] = []
    server = Postmortem(
        root,
        BundleStore(in_the_way),
        TfGuard(),
        on_failure=lambda death, bad, fix: failures.append(fix),
    )
    server.handle(dead_kernel(root))
    assert failures == [
        "Set TFGUARD_DIR to a folder of your own on a disk that this server can write to."
    ]
    in_the_way.unlink()
    [entry] = Postmortem(root, BundleStore(in_the_way), TfGuard()).handle_unwatched()
    assert (entry["cause"], entry["confidence"]) == ("sigkill_unattributed", "likely")
    assert (entry["kernel_id"], entry["notebook_path"]) == ("k", "a.ipynb")
    assert os.listdir(root) == []


def test_a_crash_that_two_processes_report_has_one_id(in_the_way: Path) -> None:
    root = in_the_way.with_name("recordings")
    store = BackedStore(in_the_way)
    seen: list[dict[str, Any]] = []
    server = Postmortem(root, store, TfGuard(), on_report=seen.append)
    server.handle(dead_kernel(root))
    assert len(seen) == 1
    assert "unsaved" in seen[0]
    other = BackedStore(in_the_way)
    [entry] = Postmortem(root, other, TfGuard()).handle_unwatched()
    assert entry["id"] == seen[0]["id"]
    assert "unsaved" in entry
    in_the_way.unlink()
    assert other.save_kept()
    server.handle_unwatched()
    assert [e["id"] for e in store.entries()] == [entry["id"]]
    assert store.unsaved() == []
    assert len(seen) == 1


def test_a_kernel_without_a_server_says_what_it_could_not_save(
    in_the_way: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFGUARD_WATCHER_PID", raising=False)
    identity = ProcessIdentity(2**22 - 7, 1)
    header = {"kernel_id": "k", "notebook_path": "a.ipynb"}
    recording = Recording(in_the_way.with_name("recordings"), identity, header, METRICS)
    recording.event("cell_start", execution_count=1, head="x = 1")
    recording.close()
    news = News(TfGuard(), "k", None)
    news.start()
    news.wait_reported(60)
    wait_until(lambda: news.at_cell() or news._printed, "the lines at a cell")
    assert capsys.readouterr().out.startswith("tfguard: the last kernel of a.ipynb died")
    [entry] = news.reports().entries()
    assert "Set TFGUARD_DIR" in entry["unsaved"]


def test_damaged_facts_are_no_facts(data_folder: Path) -> None:
    root = data_folder / "recordings"
    made = Postmortem(root, BackedStore(data_folder / "bundles"), TfGuard())
    for seen in ("", "[]", '{"server": 3}'):
        (dead_kernel(root).recording / "seen.json").write_text(seen)
        assert made.handle_unwatched() == []  # its watcher may still report it
    odd = '{"server": {"exit": [1]}, "identity": {"died": "x"}, "id": "../x", "system_log": 5}'
    (dead_kernel(root).recording / "seen.json").write_text(odd)
    assert [entry["cause"] for entry in made.handle_unwatched()] == ["unknown"]
    assert os.listdir(root) == []
