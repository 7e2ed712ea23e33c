"""Real processes that are watched and die."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.watch.crash.crash import Crash
from jupyter_tfguard.watch.crash.process_handle import is_running
from jupyter_tfguard.watch.gpu.gpu_helper import GpuHelper
from jupyter_tfguard.watch.history import OWN_COLUMNS, SHARED_COLUMNS
from jupyter_tfguard.watch.monitored import Kernel
from jupyter_tfguard.watch.watcher import Watcher
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

from .conftest import MIB, Start, Watch

WAIT = "print(flush=True); import sys; sys.stdin.read()"
GROW = """
import time
print(flush=True)
held = []
while len(held) < 300:
    held.append(bytearray(1 << 20)); time.sleep(0.005)
time.sleep(60)
"""


def test_a_death_is_handed_on_with_everything_seen(watch: Watch, start: Start) -> None:
    process = start(WAIT)
    monitored = watch.begin(process.pid, kernel_name="python3", notebook_path="a.ipynb")
    before = time.time()
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    crash = watch.crash()
    facts = crash.facts
    assert (crash.kernel_id, crash.kernel_name, crash.notebook_path) == (
        "kernel-1",
        "python3",
        "a.ipynb",
    )
    assert crash.identity.pid == process.pid
    assert crash.recording.name == crash.identity.folder_name
    assert facts.exit is not None
    assert (facts.exit.signal, facts.kernel_alive) == ("SIGTERM", False)
    assert before <= facts.died <= time.time()
    assert facts.columns == ("time", *OWN_COLUMNS, *SHARED_COLUMNS)
    assert all(len(row) == len(facts.columns) for row in facts.rows)
    assert facts.before is not None
    assert facts.after is not None
    assert facts.before.time <= facts.died <= facts.after.time
    assert facts.before.host_total_bytes == facts.after.host_total_bytes
    assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize(
    ("heard", "answered"),
    [((None, None), None), ((None, 0), False), ((1, 1), False), ((0, 1), True), ((1, 2), True)],
)
def test_whether_the_host_ever_heard_of_it_is_kept(
    watch: Watch, start: Start, heard: tuple[int | None, int | None], answered: bool | None
) -> None:
    process = start(WAIT)
    now = heard[0]
    monitored = watch.watcher.watch(process.pid, Kernel("k", heard_count=lambda: now))
    now = heard[1]
    process.kill()
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    assert watch.crash().facts.answered is answered


@pytest.mark.parametrize(("number", "is_read"), [(signal.SIGBUS, True), (signal.SIGSEGV, False)])
def test_shared_memory_is_read_after_a_bus_error(
    watch: Watch, start: Start, number: signal.Signals, is_read: bool
) -> None:
    process = start(WAIT)
    monitored = watch.begin(process.pid)
    process.send_signal(number)
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    facts = watch.crash().facts
    assert facts.exit is not None
    assert facts.exit.signal == number.name
    assert (facts.shared_memory is not None) is is_read


def test_the_size_of_the_other_kernels_is_kept_and_not_their_names(
    watch: Watch, start: Start
) -> None:
    process, other = start(WAIT), start(WAIT)
    monitored = watch.begin(process.pid)
    stays = watch.watcher.watch(other.pid, Kernel("other", notebook_path="rival.ipynb"))
    wait_until(lambda: stays.latest is not None)
    process.kill()
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    crash = watch.crash()
    bundle = capture(identity=crash.identity, server=crash.facts)
    [size] = bundle["server"]["other_kernel_bytes"]
    assert size > MIB
    assert bundle["machine"]["cores"] >= 1
    assert "rival" not in str(bundle)


def test_a_death_before_the_gpus_were_read_says_so_and_not_what_our_reader_does(
    tmp_path: Path, start: Start
) -> None:
    crashes: queue.Queue[Crash] = queue.Queue()
    reader = GpuHelper()  # nobody has asked it yet: it is still "starting"
    watcher = Watcher(tmp_path, crashes.put, lambda monitored: None, gpus=reader.read)
    process = start(WAIT)
    monitored = watcher.watch(process.pid, Kernel("k"))
    process.kill()
    wait_until(lambda: not monitored.handle.is_running())
    watcher.ended(monitored)
    crash = crashes.get(timeout=DEADLINE_SECONDS)
    watcher.stop()
    assert crash.facts.unavailable["NVML"] == "not read yet when the kernel ended"


def test_the_last_sample_is_near_the_true_peak(watch: Watch, start: Start) -> None:
    process = start(GROW)
    monitored = watch.begin(process.pid)
    wait_until(lambda: (monitored.peak_bytes or 0) > 150 * MIB)
    process.kill()
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    facts = watch.crash().facts
    column = facts.columns.index("process.rss_bytes")
    seen = [row[column] for row in facts.rows]
    assert None not in seen
    assert 0 not in seen  # a process being taken down shows 0, which is no sample
    assert max(v for v in seen if v is not None) > 140 * MIB
    assert facts.peak_bytes is not None
    assert facts.peak_bytes > 150 * MIB


def test_the_end_of_an_unannounced_process_is_noticed(watch: Watch, start: Start) -> None:
    process = start(WAIT)
    monitored = watch.begin(process.pid)
    process.kill()
    assert watch.gone.get(timeout=DEADLINE_SECONDS) is monitored


def test_vanished_children_are_named(watch: Watch, start: Start) -> None:
    process = start(
        "import subprocess, sys\n"
        "kid = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n" + WAIT
    )
    monitored = watch.begin(process.pid)
    wait_until(lambda: bool(monitored.children))
    [child] = monitored.children
    os.kill(child, signal.SIGKILL)
    process.kill()
    wait_until(lambda: not monitored.handle.is_running())
    wait_until(lambda: not is_running(child))
    watch.watcher.ended(monitored)
    assert watch.crash().facts.ended_children == (child,)


def test_the_return_code_is_the_last_resort(
    watch: Watch, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(WAIT)
    monitored = watch.begin(process.pid)
    monkeypatch.setattr(
        "jupyter_tfguard.watch.crash.process_handle.read_end", lambda pid, pidfd: None
    )
    process.kill()
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored, returncode=lambda: -9)
    exit_facts = watch.crash().facts.exit
    assert exit_facts is not None
    assert (exit_facts.signal, exit_facts.how) == ("SIGKILL", "returncode")


def test_a_zombie_can_be_watched_and_reported(watch: Watch) -> None:
    process = subprocess.Popen(["true"])
    wait_until(lambda: not is_running(process.pid))
    monitored = watch.watcher.watch(process.pid, Kernel("k"))
    watch.watcher.ended(monitored)
    facts = watch.crash().facts
    assert facts.exit is not None
    assert facts.exit.code == 0
    assert facts.rows == ()
    assert facts.before is None
    process.wait()


def test_nobody_cannot_be_watched(watch: Watch) -> None:
    with pytest.raises(SourceUnavailable):
        watch.watcher.watch(2**22 + 1, Kernel("k"))


def test_stopping_leaves_no_thread_and_no_descriptor(tmp_path: Path, start: Start) -> None:
    process = start(WAIT)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    stopped = Watch(tmp_path)
    stopped.begin(process.pid)
    stopped.watcher.stop()
    wait_until(lambda: threading.active_count() == threads)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_failing_receiver_does_not_stop_the_next_report(
    tmp_path: Path, start: Start, data_folder: Path
) -> None:
    seen = []

    def receive(crash: object) -> None:
        seen.append(crash)
        raise RuntimeError("disk full")

    watcher = Watcher(tmp_path, receive, lambda monitored: None)
    for _ in range(2):
        process = start(WAIT)
        monitored = watcher.watch(process.pid, Kernel("k"))
        process.kill()
        wait_until(lambda w=monitored: not w.handle.is_running())
        watcher.ended(monitored)
    wait_until(lambda: len(seen) == 2)
    watcher.stop()
