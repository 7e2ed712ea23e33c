"""`jupyter tfguard list` of a crash loop, and `why` on a full disk."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from tests.cli.test_forget import METRICS, die
from tests.rigs.schemas import matches

pytestmark = pytest.mark.quick


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


def test_equal_crashes_are_one_entry(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store, 12)
    die(store, kernel_id="another", notebook_path="another.ipynb")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * 2
    assert "unforgettable-4f1c.ipynb · 11 more like this since 20" in lines[3]
    assert main(["list", "--json"]) == 0
    entries = matches("crashes", json.loads(capsys.readouterr().out))["crashes"]
    assert [entry["same_as"] for entry in entries] == [None, None] + [entries[1]["id"]] * 11


def test_a_stop_is_no_crash_but_is_shown(
    store: BundleStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    lines = ["tfguard stopped this cell.", "Saved. Then:\n    epoch = \x1b[31mtfguard"]
    header = {"notebook_path": "train.ipynb"}
    with contextlib.closing(
        Recording(store.root.parent / "recordings", identity, header, METRICS)
    ) as recording:
        recording.event("memory_stop", execution_count=3, what="stopped", lines=lines)
        for words in (["why"], ["list"]):
            assert main(words) == 0
            printed = capsys.readouterr().out
            assert "cell [3] of train.ipynb: stopped, because memory was nearly" in printed
        assert main(["why"]) == 0
        printed = capsys.readouterr().out
        assert "tfguard stopped this cell." in printed
        assert "no crash yet" in printed
        assert "\x1b" not in printed
        assert main(["why", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) is None
        # A later crash is the answer again.
        monkeypatch.setattr(time, "time", lambda now=time.time: now() + 60)
        die(store)
        assert main(["why"]) == 0
        assert "sigkill" in capsys.readouterr().out


def test_a_disk_that_is_full_does_not_hide_the_report(
    store: BundleStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    die(store)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BundleStore, "mark", full)
    assert main(["why"]) == 0
    assert "sigkill" in capsys.readouterr().out


def test_an_old_crash_is_not_taken_for_a_new_one(
    store: BundleStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    die(store)
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 4 * 3600)
    assert main(["why"]) == 0
    assert capsys.readouterr().out.startswith("Last crash: 4 h")
    assert main(["why", "--since", "10"]) == 1
    assert "No kernel died in the last 10 minutes" in capsys.readouterr().out
    assert main(["why", "--since", "600"]) == 0
