"""`jupyter tfguard forget`: what goes is gone for good, and what a running kernel writes stays."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.alive import claim
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.shield import note_problem
from tests.rigs.schemas import matches

pytestmark = pytest.mark.quick

MARKER = "unforgettable-4f1c"
METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


class Terminal(io.StringIO):
    """A person who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def die(
    store: BundleStore,
    count: int = 1,
    *,
    kernel_id: str = "k",
    notebook_path: str = f"{MARKER}.ipynb",
) -> None:
    postmortem = Postmortem(store.root.parent / "recordings", store, TfGuard())
    for _ in range(count):
        facts = ServerFacts(exit=ExitFacts("SIGKILL", None, "waitid"), died=time.time())
        bundle = capture(
            identity=ProcessIdentity(4711, 1),
            kernel_id=kernel_id,
            notebook_path=notebook_path,
            server=facts,
        )
        postmortem.report(bundle)


def dead_recording(root: Path) -> Path:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    recording = Recording(root, identity, {"notebook_path": MARKER}, METRICS)
    recording.event("cell_start", head=MARKER)
    recording.folder.write_whole("stderr.0.txt", MARKER.encode())
    recording.close()
    process.communicate(b"\n")
    return recording.folder.path


def forget(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["forget", *words]) == code
    printed = capsys.readouterr()
    return printed.out, printed.err


def ids(store: BundleStore) -> list[str]:
    return [entry["id"] for entry in store.entries()]


def files_with_the_marker(folder: Path) -> list[Path]:
    """Everything below `folder` that has it in its content, its name, or where it points to."""
    found = []
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if MARKER.encode() in content or MARKER in path.name:
            found.append(path)
    return found


def test_after_forget_all_no_byte_of_a_report_or_a_dead_kernel_is_left(
    store: BundleStore, data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store, 8)
    recordings = data_folder / "recordings"
    dead_recording(recordings)
    claimed = claim(dead_recording(recordings))
    assert claimed is not None
    unreadable = dead_recording(recordings)
    (unreadable / "header.json").write_text("{")
    note_problem(f"a place with {MARKER}", f"{MARKER} {time.time()}")
    # What killed writers leave: half a bundle.
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    half = store.root / f".{store.ids()[0]}.{dead.pid}"
    half.mkdir(mode=0o700)
    (half / "bundle.json").write_text(MARKER)
    damaged = store.root / "20260101-000000-1-abcd"
    damaged.mkdir(mode=0o700)
    (damaged / "entry.json").write_text(MARKER)
    assert len(files_with_the_marker(data_folder)) > 15

    out, _ = forget(capsys, "--all", "--yes")
    assert files_with_the_marker(data_folder) == []
    assert out == "Deleted 9 reports and 3 recordings of dead kernels.\n"
    assert ids(store) == []
    assert [path for path in data_folder.rglob("*") if path.is_file() and path.read_bytes()] == []


@pytest.fixture
def living(data_folder: Path) -> Iterator[Recording]:
    mine = ProcessIdentity.of(os.getpid())
    assert mine is not None
    recording = Recording(data_folder / "recordings", mine, {"kernel_id": "lives"}, METRICS)
    recording.event("cell_start", head="still running")
    yield recording
    recording.close()


def test_a_running_kernel_s_recording_stays_and_is_reported(
    living: Recording, data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in living.folder.path.iterdir()}
    out, _ = forget(capsys, "--all", "--yes")
    assert "Deleted 0 reports and 0 recordings of dead kernels." in out
    assert "Kept 1 recording of running kernels." in out
    assert {path: path.read_bytes() for path in living.folder.path.iterdir()} == before


def test_ids_by_their_first_characters(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store, 7)
    first, second, *rest = ids(store)
    out, _ = forget(capsys, first, second[:-1])
    assert out == "Deleted 2 reports.\n"
    assert ids(store) == rest


def test_an_id_that_is_none_or_several_removes_nothing(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store, 2)
    before = ids(store)
    for wrong, words in (
        ("nonsense", "No report has the id"),
        ("2", "2 reports have ids that start with"),
    ):
        _, err = forget(capsys, before[0], wrong, code=2)
        assert words in err
    _, err = forget(capsys, "", code=2)
    assert "No report has the id" in err
    assert ids(store) == before


@pytest.mark.parametrize("words", [(), ("--all", "20260101")])
def test_what_to_forget_must_be_said_and_only_once(
    store: BundleStore, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    die(store)
    _, err = forget(capsys, *words, "--yes", code=2)
    assert "Pass the ids of reports" in err
    assert len(ids(store)) == 1


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_a_person_is_asked(
    store: BundleStore,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    left: int,
) -> None:
    die(store)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    _, err = forget(capsys, "--all", code=2 if left else 0)
    assert "Delete 1 report, all recordings of dead kernels" in err
    assert len(ids(store)) == left
    if left:
        assert "Nothing was deleted." in err


def test_without_a_terminal_all_needs_yes(
    store: BundleStore, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store)
    _, err = forget(capsys, "--all", code=2)
    assert "pass --yes" in err
    assert len(ids(store)) == 1
    forget(capsys, ids(store)[0])
    assert ids(store) == []


def test_json_reports_all(
    store: BundleStore,
    living: Recording,
    data_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    die(store)
    dead = dead_recording(data_folder / "recordings")
    (report_id,) = ids(store)
    out, _ = forget(capsys, "--all", "--yes", "--json")
    told: dict[str, Any] = matches("removal", json.loads(out))
    assert told == {
        "schema_version": 1,
        "reports": [report_id],
        "recordings": [dead.name],
        "living_recordings_left": 1,
        "not_removed": [],
    }


def test_what_is_not_tfguard_s_stays(
    store: BundleStore, data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    die(store)
    mine = [data_folder / name for name in ("thesis.txt", "bundles/notes", "recordings/music.mp3")]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    forget(capsys, "--all", "--yes")
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_what_cannot_be_removed_is_said(
    store: BundleStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    die(store)

    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr("jupyter_tfguard.record.bundle.remove_tree", refuse)
    out, err = forget(capsys, "--all", "--yes", code=2)
    assert "Operation not permitted" in err
    assert "delete the items yourself" in err
    assert out.startswith("Deleted 0 reports")
