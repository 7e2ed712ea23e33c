"""Memory of real processes and their children."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_tfguard.collectors import resident
from jupyter_tfguard.collectors.process import ProcessCollector, descendants
from jupyter_tfguard.errors import SourceUnavailable
from tests.rigs.waiting import wait_until

MIB = 1024**2
# Holds 60 MiB, and has a child that holds 30 MiB and a grandchild.
FAMILY = """
import subprocess, sys, time
held = bytearray(60 << 20)
child = "import subprocess, sys; held = bytearray(30 << 20); " \\
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=subprocess.DEVNULL); " \\
        "print(flush=True); sys.stdin.read()"
kid = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
kid.stdout.readline()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    members = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
    yield parent
    for member in members:
        if member.is_running():
            member.kill()
    parent.communicate()


def test_resident_memory_peak_and_children(family: subprocess.Popen[bytes]) -> None:
    collector = ProcessCollector(family.pid)
    values = collector.collect()
    assert 60 * MIB < values["process.rss_bytes"] < 120 * MIB
    assert values["process.peak_bytes"] >= values["process.rss_bytes"] - MIB
    assert values["process.swap_bytes"] == 0
    assert values["process.thread_count"] == 1
    assert MIB < values["process.file_bytes"] < values["process.rss_bytes"] - 40 * MIB
    assert 30 * MIB < values["process.children_rss_bytes"] < 100 * MIB
    assert set(values) == {metric.name for metric in ProcessCollector.metrics}
    collector.close()


def test_descendants_name_children_and_grandchildren(family: subprocess.Popen[bytes]) -> None:
    expected = [p.pid for p in psutil.Process(family.pid).children(recursive=True)]
    assert sorted(descendants(family.pid)) == sorted(expected)


def test_a_child_of_another_thread_is_found(tmp_path: object) -> None:
    code = (
        "import subprocess, sys, threading\n"
        "run = lambda: subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'])\n"
        "def work():\n    run(); print('up', flush=True); sys.stdin.read()\n"
        "t = threading.Thread(target=work); t.start(); t.join()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    assert len(descendants(parent.pid)) == 1
    parent.communicate()


def test_an_ended_process_is_unavailable_and_never_zero(family: subprocess.Popen[bytes]) -> None:
    collector = ProcessCollector(family.pid)
    collector.collect()
    family.kill()
    # A zombie: it has not been waited for.
    wait_until(lambda: Path(f"/proc/{family.pid}/stat").read_text().split()[2] == "Z")
    with pytest.raises(SourceUnavailable):
        collector.collect()
    family.wait()
    with pytest.raises(SourceUnavailable):
        collector.collect()
    collector.close()


def test_a_process_that_never_was_is_unavailable() -> None:
    with pytest.raises(SourceUnavailable):
        ProcessCollector(2**22 + 1)


def test_where_there_is_no_procfs_psutil_answers(
    family: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_procfs = ProcessCollector(family.pid)
    monkeypatch.setattr(resident, "has_procfs", lambda: False)
    by_psutil = ProcessCollector(family.pid)
    there, here = by_procfs.collect(), by_psutil.collect()
    assert abs(there["process.rss_bytes"] - here["process.rss_bytes"]) < 2 * MIB
    assert "process.file_bytes" not in here
    family.kill()
    family.wait()
    with pytest.raises(SourceUnavailable):
        by_psutil.collect()
    by_psutil.close()
    by_procfs.close()


def test_closing_gives_the_descriptors_back() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        ProcessCollector(os.getpid()).close()
    assert len(os.listdir("/proc/self/fd")) == before
