"""The checkpoint's file after the crash: told as it lies there, and never waited for."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jupyter_tfguard.postmortem import checkpoint_file as checkpoint_file_module
from jupyter_tfguard.postmortem.checkpoint_file import checkpoint_file
from jupyter_tfguard.record.events import Event, event_of, events_of


def event(path: object) -> Event:
    found = event_of({"kind": "checkpoint", "path": path})
    assert found is not None
    return found


def test_the_newest_one_is_looked_at(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.keras").write_text("x")
        os.utime(tmp_path / f"{number}.keras", (number, number))
    events = [event(str(tmp_path / f"{number}.keras")) for number in (1, 2)]
    assert checkpoint_file([*events, *events_of([{"kind": "epoch_end"}])]) == {"modified": 2.0}


def test_the_format_of_several_files_is_known_by_its_last(tmp_path: Path) -> None:
    (tmp_path / "model.index").write_text("x")
    os.utime(tmp_path / "model.index", (3, 3))
    assert checkpoint_file([event(str(tmp_path / "model"))]) == {"modified": 3.0}


@pytest.mark.parametrize("path", ["relative.keras", "", None, 3, ["/tmp"], {}], ids=repr)
def test_what_names_no_place_is_not_searched_for(path: object) -> None:
    assert checkpoint_file([event(path)]) is None
    assert checkpoint_file([]) is None


@pytest.mark.parametrize("path", ["/nowhere/model.keras", "/a\0b", "/" + "x" * 5000], ids=repr)
def test_a_file_that_is_gone_is_reported(path: str) -> None:
    assert checkpoint_file([event(path)]) == {"modified": None}


def test_a_disk_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(checkpoint_file_module, "_modified", lambda path: answers.wait())
    try:
        assert checkpoint_file([event(str(tmp_path / "model.keras"))]) is None
    finally:
        answers.set()
