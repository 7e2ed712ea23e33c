"""Fails the k-th call of each system call that the guard makes in a kernel, one fault or failing disk a life.

A library in C (faults.c, loaded before the C library) fails calls whose path or descriptor lies in tfguard's folder; the
life is a whole GuardSession in a real IPython shell that runs cells, writes natively, forks and ends. Run alone::

    python -m tests.rigs.faults --count 10000 --seed 1 --json

Each life must go on: no exception in a cell, no process that dies, no descriptor left over; at least one notice of what
was lost, none twice; and what could be written is readable.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyter_tfguard import shield
from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.kernel import startup
from jupyter_tfguard.kernel.current import current, set_current
from jupyter_tfguard.kernel.session import GuardSession
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.recording import FAULT
from tests.rigs.long_run import Progress, Totals, long_run, merge, options, show

SOURCE = Path(__file__).with_name("faults.c")
LIBRARY_VARIABLE = "TFG_FAULT_LIBRARY"
BAD = (
    "kernel_deaths",
    "cell_exceptions",
    "sigbus",
    "unreadable",
    "unnoticed",
    "noticed_twice",
    "leaked_descriptors",
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_REFUSED = (errno.EROFS, errno.EACCES)
_OPENING = (*_FULL, *_REFUSED, errno.EMFILE, errno.EINTR)
# Which call can fail how. Source: the ERRORS sections of the manual pages.
ERRORS: dict[str, tuple[int, ...]] = {
    "open": _OPENING,
    "openat": _OPENING,
    "write": (*_FULL, errno.EINTR),
    "pwrite": (*_FULL, errno.EINTR),
    "ftruncate": (errno.EIO, errno.EINTR),
    "posix_fallocate": (*_FULL, errno.EINTR, errno.EOPNOTSUPP),
    "fallocate": (*_FULL, errno.EINTR, errno.EOPNOTSUPP),
    "mkdir": (*_FULL, *_REFUSED),
    "rename": (*_FULL, *_REFUSED),
    "unlink": (errno.EIO, *_REFUSED),
    "rmdir": (errno.EIO, *_REFUSED),
    "fstat": (errno.EIO,),
    "fstatat": (errno.EIO, errno.EACCES),
    "lstat": (errno.EIO, errno.EACCES),
    "fchmod": (errno.EIO, errno.EROFS),
    "dup2": (errno.EMFILE, errno.EINTR),
    "pipe": (errno.EMFILE,),
    "splice": (*_FULL, errno.EINVAL),
    "lock": (errno.ENOLCK, errno.EIO, errno.EINTR),
    "*": (*_FULL, errno.EROFS),
}
# The name of the file in a system error.
_NAME = re.compile(r": '[^']*'")
CELLS = (
    "x = 1",
    "import os; os.write(2, b'native words\\n')",
    "pid = os.fork()\nif pid == 0:\n    os._exit(0)\nassert os.waitpid(pid, 0)[1] == 0",
    "y = [x] * 3",
)


def compiler() -> str | None:
    """A C compiler; None when there is none."""
    return shutil.which("gcc") or shutil.which("cc")


def build(folder: Path) -> Path:
    """The library, compiled into `folder`."""
    library = folder / "faults.so"
    command = [str(compiler()), "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


@dataclass(frozen=True)
class Fault:
    """What fails: the `nth` call of this kind; modes as in faults.c."""

    call: str
    nth: int
    code: int
    mode: str

    def __str__(self) -> str:
        return f"{self.call}:{self.nth}:{self.code}:{self.mode}"

    @property
    def may_hide_files(self) -> bool:
        """True when fstat may fail: a descriptor that may have become the user's own is left open rather than closed."""
        return self.call in ("fstat", "*") or self.mode == "a"


class Injector:
    """The library in this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ[LIBRARY_VARIABLE])
        self._library.faults_arm.argtypes = (
            ctypes.c_char_p,
            ctypes.c_long,
            ctypes.c_int,
            ctypes.c_char,
        )
        for name in ("faults_failed", "faults_count"):
            getattr(self._library, name).restype = ctypes.c_long

    def folder(self, path: Path) -> None:
        """Where calls may fail; counts start at 0."""
        self._library.faults_folder(os.fsencode(path))
        self._library.faults_forget()

    def arm(self, fault: Fault) -> None:
        """From now on."""
        self._library.faults_arm(fault.call.encode(), fault.nth, fault.code, fault.mode.encode())

    def disarm(self) -> None:
        """No more faults; what reads the recording afterwards is not counted."""
        self._library.faults_arm(b"", 0, 0, b"o")
        self._library.faults_folder(b"")

    @property
    def failed(self) -> int:
        """Faults since it was armed."""
        return int(self._library.faults_failed())

    def count(self, call: str) -> int:
        """Calls in the folder."""
        return int(self._library.faults_count(call.encode()))


@functools.cache
def shell() -> Any:
    """A real IPython shell with as much of a kernel as the guard looks at."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    made = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    made.kernel = SimpleNamespace(
        control_handlers={}, shell_handlers={}, parent=None, get_parent=lambda channel: {}
    )
    return made


@dataclass
class Life:
    """What one life with a fault came to."""

    fault: Fault
    failed: int = 0
    cell_error: str | None = None
    notices: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    unreadable: str | None = None
    lost: tuple[str, ...] = ()
    descriptors: int = 0

    def totals(self) -> Totals:
        """In numbers."""
        unnoticed = self.lost and not self.notices
        twice = len(self.written) != len(set(self.written))
        found: Totals = {
            "lives": 1,
            "faults": self.failed,
            "lives_with_a_fault": int(self.failed > 0),
            "cell_exceptions": int(self.cell_error is not None),
            "unreadable": int(self.unreadable is not None),
            "lives_that_lost_something": int(bool(self.lost)),
            "unnoticed": int(bool(unnoticed)),
            "noticed_twice": int(twice),
            "leaked_descriptors": 0 if self.fault.may_hide_files else max(0, self.descriptors),
            "kernel_deaths": 0,
            "sigbus": 0,
            "by_call": {self.fault.call: int(self.failed > 0)},
        }
        if any(found[name] for name in BAD):
            found["failures"] = [f"{self}"]
        return found


def live(injector: Injector, fault: Fault | None, data: Path, *, unload: bool) -> Life:
    """One life of the guard in this process, from its start to its end."""
    os.environ["TFGUARD_DIR"] = str(data)
    shield._noted.clear()
    before = len(os.listdir("/proc/self/fd"))
    found = Life(fault or Fault("none", 0, 0, "o"))
    injector.folder(data)
    if fault is not None:
        injector.arm(fault)
    startup.autostart(shell())
    session = current()
    assert session is not None
    recording = session.recording
    for code in CELLS:
        result = shell().run_cell(code)
        if not result.success:
            found.cell_error = f"{code!r}: {result.error_before_exec or result.error_in_exec!r}"
            break
    session.libraries.refresh_growth()
    if recording is not None:
        recording.set_progress({"what": "fit", "step": 1})
    _wait_for_threads(session)
    if unload:
        startup.stop(shell())
    else:
        session._at_exit("quit")
        set_current(None)
    found.failed = injector.failed
    injector.disarm()
    found.notices = (*session.problems, *shield.noted_in_this_process())
    found.written = tuple(
        f"{p['place']}: {_NAME.sub('', p['what'])}" for p in shield.read_problems()
    )
    if not unload:
        found.unreadable, found.lost = _left(data)
    found.descriptors = len(os.listdir("/proc/self/fd")) - before
    return found


def _wait_for_threads(session: GuardSession) -> None:
    """Until the first sample is taken, and a moment for the native words."""
    ends = time.monotonic() + 5
    pulse = session.pulse
    while pulse is not None and pulse.latest is None and time.monotonic() < ends:
        time.sleep(0.01)
    time.sleep(0.02)


def _left(data: Path) -> tuple[str | None, tuple[str, ...]]:
    """What cannot be read of what was written, and what of a whole life is not there."""
    folders = list((data / "recordings").glob("[0-9]*"))
    if not folders or not (folders[0] / "header.json").exists():
        return None, ("recording",)
    try:
        contents = read_recording(folders[0])
    except RecordUnreadable as bad:
        return str(bad), ()
    started = [event for event in contents.events if event["kind"] == "cell_start"]
    there = {
        "events": len(started) == len(CELLS),
        "samples": bool(contents.samples),
        "progress": contents.progress is not None,
        "native words": "native words" in contents.stderr_tail,
        "end": contents.end is not None,
        "fault file": (folders[0] / FAULT).exists(),
        "state of the guard": bool(contents.header.get("guard")),
    }
    unreadable = "; ".join(contents.problems) or None
    return unreadable, tuple(name for name, found in there.items() if not found)


def choose(rng: random.Random, case: int, counts: dict[str, int]) -> Fault:
    """A fault at one of the calls that a life makes; each kind of call has its turn."""
    calls = [name for name, count in counts.items() if count]
    call = calls[case % len(calls)]
    mode = rng.choices("ofa", (6, 2, 1))[0]
    if call in ("write", "pwrite") and rng.random() < 0.2:
        mode = "s"
    code = rng.choice(ERRORS[call])
    if code == errno.EINTR:
        mode = "o"  # Python asks again, for ever
    return Fault(call, rng.randint(1, counts[call]), code, mode)


def work(seed: int, first: int, end: int, progress: Progress) -> Totals:
    """Lives `first` to `end`, in this process."""
    injector = Injector()
    totals: Totals = {}
    with quiet(), tempfile.TemporaryDirectory() as place:
        live(injector, None, Path(place) / "imports", unload=False)
        clean = live(injector, None, Path(place) / "clean", unload=False)
        if clean.totals().get("failures") or clean.lost or clean.notices:
            return {"kernel_deaths": end - first, "failures": [f"without any fault: {clean}"]}
        counts = {call: injector.count(call) for call in ERRORS if call != "*"}
        counts["*"] = sum(counts.values())
        for case in range(first, end):
            progress.at(case)
            rng = random.Random(f"{seed}-{case}")
            data = Path(place) / f"{case}"
            found = live(injector, choose(rng, case, counts), data, unload=rng.random() < 0.2)
            merge(totals, found.totals())
            shutil.rmtree(data, ignore_errors=True)
    return totals


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that the cells print is of interest."""
    null = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(null, number)
    os.close(null)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    yield


def run(count: int, *, seed: int, jobs: int) -> Totals:
    """All lives; this process must have been started with the library loaded."""
    totals = long_run(
        functools.partial(work, seed),
        count,
        piece=100,
        jobs=jobs,
    )
    # A worker that dies is a kernel that would have died.
    deaths = int(totals.get("crashes", 0)) + int(totals.get("hangs", 0))
    sigbus = sum("status 7" in str(failure) for failure in totals.get("failures", []))
    deaths += int(totals.get("kernel_deaths", 0))
    return totals | {"kernel_deaths": deaths, "sigbus": sigbus}


def preloaded(library: Path) -> dict[str, str]:
    """An environment for a process that loads the library first."""
    keep = {
        k: v for k, v in os.environ.items() if not k.startswith(("TFGUARD_", "PYTEST_", "JPY_"))
    }
    return keep | {"LD_PRELOAD": str(library), LIBRARY_VARIABLE: str(library)}


def main() -> int:
    """The command line."""
    arguments = options("Fails system calls of the guard in a kernel.", count=1000).parse_args()
    if LIBRARY_VARIABLE not in os.environ:
        if sys.platform != "linux" or compiler() is None:
            sys.exit("This needs Linux and a C compiler.")
        with tempfile.TemporaryDirectory() as place:
            library = build(Path(place))
            command = [sys.executable, "-m", "tests.rigs.faults", *sys.argv[1:]]
            return subprocess.run(command, env=preloaded(library), check=False).returncode
    totals = run(arguments.count, seed=arguments.seed, jobs=arguments.jobs)
    return show(totals, as_json=arguments.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
