"""SIGTERM in a job of a batch system while a fit runs: real processes, real signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.guard.batch_signal import batch_system
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

# `save` writes a file, so that its time and thread can be seen.
BEGIN = """
import ctypes, faulthandler, os, signal, sys, threading, time
from jupyter_tfguard.guard.batch_signal import BatchSignal
def save(seconds):
    with open("saved", "w") as file:
        file.write(threading.current_thread().name)
def ready():
    open("ready", "w").close()
watch = BatchSignal(save, step_seconds=0.2)
dump = open("dump", "w")
"""
WORK = """
deadline = time.monotonic() + 300
while time.monotonic() < deadline:
    sum(range(1000))
"""


@contextlib.contextmanager
def running(folder: Path, code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process in `folder`, once it has made the file ``ready``."""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=folder)
    try:
        wait_until(lambda: (folder / "ready").exists() or process.poll() is not None, "its start")
        assert process.poll() is None
        yield process
    finally:
        process.kill()
        process.wait()


def terminated(process: subprocess.Popen[bytes]) -> int:
    """Its status after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    return process.wait(DEADLINE_SECONDS)


def test_the_model_is_saved_and_the_process_ends_by_its_signal(tmp_path: Path) -> None:
    with running(tmp_path, f"{BEGIN}\nassert watch.arm()\nready()\n{WORK}") as process:
        assert terminated(process) == -signal.SIGTERM
    assert (tmp_path / "saved").read_text() == "tfguard-sigterm"


@pytest.mark.parametrize("is_disarmed", [False, True])
def test_stacks_of_faulthandler_are_written_as_without_us(
    tmp_path: Path, is_disarmed: bool
) -> None:
    disarm = "watch.disarm()" if is_disarmed else ""
    code = f"""{BEGIN}
faulthandler.register(signal.SIGTERM, file=dump, chain=True)
watch.arm()
{disarm}
ready()
{WORK}"""
    with running(tmp_path, code) as process:
        assert terminated(process) == -signal.SIGTERM
    assert "most recent call first" in (tmp_path / "dump").read_text()
    assert (tmp_path / "saved").exists() is not is_disarmed


def test_a_handler_of_the_users_runs_afterwards(tmp_path: Path) -> None:
    code = f"""{BEGIN}
def mine(number, frame):
    sys.exit(7 if os.path.exists("saved") else 8)
signal.signal(signal.SIGTERM, mine)
watch.arm()
ready()
try:
    {WORK.strip().replace(chr(10), chr(10) + "    ")}
finally:
    watch.disarm()
    assert signal.getsignal(signal.SIGTERM) is mine"""
    with running(tmp_path, code) as process:
        assert terminated(process) == 7


def test_a_main_thread_inside_native_code_is_not_waited_for(tmp_path: Path) -> None:
    # A mutex that is locked twice: no signal handler of Python's runs in this thread again.
    code = f"""{BEGIN}
watch.arm()
library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(128)
library.pthread_mutex_lock(mutex)
ready()
library.pthread_mutex_lock(mutex)"""
    with running(tmp_path, code) as process:
        assert terminated(process) == -signal.SIGTERM
    assert (tmp_path / "saved").exists()


def test_a_save_that_fails_or_hangs_keeps_no_signal(tmp_path: Path) -> None:
    code = f"""{BEGIN}
def save(seconds):
    ready()
    raise OSError("disk")
BatchSignal(save).arm()
ready()
{WORK}"""
    with running(tmp_path, code) as process:
        assert terminated(process) == -signal.SIGTERM
    hangs = code.replace('raise OSError("disk")', "time.sleep(600)")
    hangs = hangs.replace(
        "BatchSignal(save)", "BatchSignal(save, save_seconds=0.1, step_seconds=0.1)"
    )
    with running(tmp_path, hangs) as process:
        assert terminated(process) == -signal.SIGTERM


def test_a_forked_child_that_is_ended_leaves_its_parent_alone(tmp_path: Path) -> None:
    code = f"""{BEGIN}
watch.arm()
child = os.fork()
if child == 0:
    {WORK.strip().replace(chr(10), chr(10) + "    ")}
os.kill(child, signal.SIGTERM)
status = os.waitpid(child, 0)[1]
assert os.WTERMSIG(status) == signal.SIGTERM and not os.path.exists("saved")
ready()
{WORK}"""
    with running(tmp_path, code) as process:
        assert not (tmp_path / "saved").exists()
        assert terminated(process) == -signal.SIGTERM
    assert (tmp_path / "saved").exists()


def test_bytes_for_an_event_loop_still_reach_it(tmp_path: Path) -> None:
    code = f"""{BEGIN}
import socket
ours, loops = socket.socketpair()
loops.setblocking(False)
signal.set_wakeup_fd(loops.fileno())
signal.signal(signal.SIGUSR1, lambda *_: None)
watch.arm()
os.kill(os.getpid(), signal.SIGUSR1)
assert ours.recv(1) == bytes([signal.SIGUSR1])
watch.disarm()
assert signal.set_wakeup_fd(-1) == loops.fileno()
assert not any(thread.name == "tfguard-sigterm" for thread in threading.enumerate())
signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert not watch.arm()"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.quick
@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"SLURM_JOB_ID": "1"}, "Slurm"),
        ({"PBS_JOBID": "1.host"}, "PBS"),
        ({"JOB_ID": "3", "SGE_TASK_ID": "undefined"}, "Grid Engine"),
        ({"JOB_ID": "3"}, None),
        ({"SLURM_JOB_ID": ""}, None),
        ({}, None),
    ],
)
def test_batch_systems_are_recognised(environment: dict[str, str], name: str | None) -> None:
    assert batch_system(environment) == name


MODEL = """
import glob, os, pathlib, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np
from jupyter_tfguard import resume
from jupyter_tfguard.guard.batch_signal import BatchSignal
from jupyter_tfguard.guard.checkpoint import Position, save
random = np.random.default_rng(0)
x = random.random((64, 10), dtype="float32")
y = x @ random.random((10, 1), dtype="float32")
model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.05), "mse")
"""
TRAIN = """
class Shows(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        position["epoch"] = epoch + 1
        if epoch == 20:
            open("ready", "w").close()
position = {}
def keep(seconds):
    save(model, Position(**position, epochs=10**6), pathlib.Path("."), limit_seconds=seconds)
assert BatchSignal(keep).arm()
print(model.evaluate(x, y, verbose=0), flush=True)
model.fit(x, y, epochs=10**6, verbose=0, callbacks=[Shows()])
"""
RESUME = """
[path] = glob.glob("tfguard-stop-*.npz")
print(resume(model, path), int(model.optimizer.iterations), model.evaluate(x, y, verbose=0))
epoch = resume(model, path)
history = model.fit(x, y, initial_epoch=epoch, epochs=epoch + 1, verbose=0)
print(history.history["loss"][0])
"""


def test_another_process_continues_where_the_signal_came(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MODEL + TRAIN)
    (tmp_path / "resume.py").write_text(MODEL + RESUME)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, stdout=log)
    try:
        wait_until((tmp_path / "ready").exists, "20 epochs")
        assert terminated(process) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    first_loss = float((tmp_path / "log").read_text().split()[0])
    done = subprocess.run(
        [sys.executable, "resume.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    epoch, iterations, loss, next_loss = map(float, done.stdout.split())
    assert epoch >= 19
    assert iterations >= 2 * epoch  # two steps an epoch
    assert loss < first_loss / 2
    assert next_loss == pytest.approx(loss, rel=0.2)
    assert os.stat(next(tmp_path.glob("tfguard-stop-*.npz"))).st_mode & 0o777 == 0o600
