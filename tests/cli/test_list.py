"""`jupyter tfguard list` and `why` where deaths were counted instead of reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.record.bundle import BundleStore
from tests.cli.test_forget import die

pytestmark = pytest.mark.quick


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


def test_a_crash_loop_is_one_line_more(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store, 1000)
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * 6
    (counted,) = [line for line in lines if "995 ×" in line and line.startswith("*")]
    assert "(995 × sigkill_unattributed)" in counted
    assert "unforgettable-4f1c.ipynb · counted together since 20" in lines[lines.index(counted) + 1]
    assert main(["list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert sum(e["group"]["deaths_count"] if e["group"] else 1 for e in entries) == 1000


def test_why_tells_of_the_loop_where_it_is_the_newest(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store, 12)
    assert main(["why"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("This kernel died 7 more times")
    group = store.entries()[0]
    assert group["unread"] is False
    assert main(["why", group["id"][:18], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["group"]["deaths_count"] == 7


def test_a_disk_that_is_full_does_not_hide_the_report(
    store: BundleStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    die(store)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BundleStore, "mark", full)
    assert main(["why"]) == 0
    assert "sigkill" in capsys.readouterr().out
