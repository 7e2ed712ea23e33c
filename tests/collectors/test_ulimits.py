"""Limits of the process: read rarely, told only where there are any."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.collectors.ulimits import UlimitCollector
from jupyter_tfguard.errors import SourceUnavailable

GIB = 1 << 30
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max data size             {data:<20} unlimited            bytes
Max address space         {space:<20} unlimited            bytes
"""
STATUS = "Name:\tpython\nVmPeak:\t 3200000 kB\nVmSize:\t 3145728 kB\nVmLck:\t 0 kB\nVmData:\t 1048576 kB\n"


@pytest.fixture
def process(tmp_path: Path) -> Path:
    folder = tmp_path / "proc" / "77"
    folder.mkdir(parents=True)
    (folder / "status").write_text(STATUS)
    return folder


def write_limits(process: Path, space: object = "unlimited", data: object = "unlimited") -> None:
    (process / "limits").write_text(LIMITS.format(space=space, data=data))


def test_without_a_limit_nothing_is_reported(process: Path, tmp_path: Path) -> None:
    write_limits(process)
    assert UlimitCollector(77, str(tmp_path)).collect() == {}


def test_a_limit_comes_with_what_it_counts(process: Path, tmp_path: Path) -> None:
    write_limits(process, space=4 * GIB)
    assert UlimitCollector(77, str(tmp_path)).collect() == {
        "process.address_space_bytes": 3 * GIB,
        "process.address_space_limit_bytes": 4 * GIB,
    }
    write_limits(process, data=2 * GIB)
    assert UlimitCollector(77, str(tmp_path)).collect() == {
        "process.data_bytes": GIB,
        "process.data_limit_bytes": 2 * GIB,
    }


def test_limit_and_use_follow_each_second(
    process: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("jupyter_tfguard.collectors.ulimits.time.monotonic", lambda: now[0])
    write_limits(process)
    collector = UlimitCollector(77, str(tmp_path))
    assert collector.collect() == {}
    write_limits(process, space=4 * GIB)
    (process / "status").write_text(STATUS.replace("3145728", "3670016"))
    assert collector.collect() == {}
    now[0] += 1
    assert collector.collect()["process.address_space_bytes"] == 3.5 * GIB


def test_a_process_that_is_gone_has_no_limits(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable):
        UlimitCollector(77, str(tmp_path)).collect()
