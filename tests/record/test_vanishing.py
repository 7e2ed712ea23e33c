"""Files that vanish while their folder is looked at: the others are seen, and nothing stays open."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.private_files import file_stats
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.training.checkpoints import CheckpointWatch
from jupyter_tfguard.watch.live.live import Live, LiveReader

pytestmark = pytest.mark.quick

STAYS = 50
GOES = 500
BYTES = 10
LATER = 4_000_000_000


def during_removals(folder: Path, look: Callable[[], object]) -> list[object]:
    """What was seen in a folder while most of its files were taken away; ``last.keras`` is the newest of all."""
    folder.mkdir()
    staying = [folder / f"{number}.keras" for number in range(STAYS)]
    going = [folder / f"goes-{number}.keras" for number in range(GOES)]
    for path in staying:
        path.write_bytes(bytes(BYTES))
    for path in going:
        path.touch()
    last = folder / "last.keras"
    last.touch()
    os.utime(last, (LATER, LATER))

    remover = threading.Thread(target=lambda: [os.unlink(path) for path in going])
    remover.start()
    seen = [look()]
    while remover.is_alive():
        seen.append(look())
    remover.join()
    return seen


def test_all_that_stay_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    seen = during_removals(folder, lambda: {name for name, _ in file_stats(folder)})
    staying = {path.name for path in folder.iterdir()}
    assert len(staying) == STAYS + 1
    assert all(isinstance(names, set) and staying <= names for names in seen)
    assert file_stats(tmp_path / "none") == []


def test_a_link_is_reported_as_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert [name for name, _ in file_stats(tmp_path)] == ["link"]


def test_the_last_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    callback = type("ModelCheckpoint", (SimpleNamespace,), {})(filepath=f"{folder}/{{epoch}}.keras")

    def newest() -> list[str]:
        watch = CheckpointWatch([callback], since=0.0)
        return [os.path.basename(written.path or "") for written in watch.poll()]

    assert newest() == []
    assert all(found == ["last.keras"] for found in during_removals(folder, newest))


def test_a_reader_does_not_make_a_recording_that_was_removed_a_moment_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "4711-12"
    monkeypatch.setattr(Path, "is_dir", lambda path: True)  # it was there when the reader asked
    with pytest.raises(RecordUnreadable):
        read_recording(gone)
    assert LiveReader(gone).read() == Live()
    assert not gone.exists()
