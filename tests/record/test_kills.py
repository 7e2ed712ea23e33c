"""A recording survives SIGKILL at any moment of its life: every finished record is there, and no half one is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

ROOT = Path(__file__).parents[2]
NOBODY = ProcessIdentity(1 << 22, 1)  # Linux gives out no such process id
PHASES = ("start", "header", "record", "rotate", "close")


@pytest.mark.skipif(sys.platform != "linux", reason="kills by timer_create(2)")
def test_kills_lose_nothing() -> None:
    command = [sys.executable, "tests/bench/kill_loop.py"]
    command += ["--count", "100", "--seed", "1", "--jobs", "2", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    wrong = ("unreadable", "lost_records", "torn_shown", "torn_written", "problems")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0), found
    assert found["kills"] == 100
    assert done.returncode == 0, found
    assert min(found["killed_in"][phase] for phase in PHASES) > 0, found["killed_in"]


class Killed(BaseException):
    """Ends a removal as SIGKILL would: nothing after it is done."""


@pytest.mark.quick
@pytest.mark.skipif(os.listdir not in os.supports_fd, reason="removes by paths")
@pytest.mark.parametrize("backwards", [False, True])
def test_what_a_kill_leaves_of_a_removal_is_no_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    listdir, unlink = os.listdir, os.unlink
    for files in range(8):
        root = tmp_path / str(files)
        metrics = [Metric("process.rss_bytes", "Memory", Unit.BYTES, "statm")]
        recording = Recording(root, NOBODY, {"kernel_id": "k"}, metrics)
        recording.event("cell_start", number=1)
        recording.end("shutdown")
        left = files

        def ordered(*place: Any) -> list[str]:
            return sorted(listdir(*place), reverse=backwards)

        def counted(*name: Any, **more: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            unlink(*name, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, "listdir", ordered)
            patch.setattr(os, "unlink", counted)
            with pytest.raises(Killed):
                recording.remove()
        assert list(each_orphan(root)) == [], f"after {files} files of the recording were deleted"


@pytest.mark.quick
def test_the_same_recording_without_its_mark_is_a_death(tmp_path: Path) -> None:
    metrics = [Metric("process.rss_bytes", "Memory", Unit.BYTES, "statm")]
    recording = Recording(tmp_path, NOBODY, {"kernel_id": "k"}, metrics)
    recording.close()
    assert [orphan.identity for orphan in list(each_orphan(tmp_path))] == [NOBODY]
