"""Forks a guarded process while its threads write events, headers and problems: each child must come to its end, hold
nothing of the parent's recording, and write nothing to it. Run alone::

    python -m tests.rigs.forks --count 10000 --json
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from jupyter_tfguard import shield
from jupyter_tfguard.kernel import startup
from jupyter_tfguard.kernel.current import current
from jupyter_tfguard.metrics import Sample
from jupyter_tfguard.record.contents import read_recording
from tests.rigs.faults import quiet, shell
from tests.rigs.long_run import Progress, Totals, long_run, merge, options, show

BAD = ("hung_children", "failed_children", "inherited_descriptors", "events_of_children")
MARK = "of-a-child"
_CHILD_SECONDS = 20.0
_WAYS = ("leave", "record", "cell", "atexit", "twice")


def work(seed: int, first: int, end: int, progress: Progress) -> Totals:
    """Forks `first` to `end`, from this process."""
    totals: Totals = {}
    # No TemporaryDirectory: the children's atexit would delete it.
    place = tempfile.mkdtemp()
    with quiet():
        os.environ["TFGUARD_DIR"] = place
        startup.autostart(shell())
        session = current()
        assert session is not None
        assert session.recording is not None
        folder = session.recording.folder.path
        with _busy(session), tempfile.TemporaryFile("w+") as stacks:
            for case in range(first, end):
                progress.at(case)
                merge(totals, _fork(session, folder, _WAYS[(seed + case) % len(_WAYS)], stacks))
        time.sleep(0.1)
        contents = read_recording(folder)
        kinds = [event["kind"] for event in contents.events]
        heads = [str(event.get("head")) for event in contents.events]
        ended = contents.end is not None
        totals["events_of_children"] = (
            sum(MARK in text for text in (*kinds, *heads, str(contents.header))) + ended
        )
        totals["problems"] = sum(not p["what"].startswith("busy") for p in shield.read_problems())
        startup.stop(shell())
    shutil.rmtree(place, ignore_errors=True)
    return totals


def _fork(session: Any, folder: Path, way: str, stacks: IO[str]) -> Totals:
    stacks.seek(0)
    stacks.truncate()
    pid = os.fork()
    if pid == 0:
        _child(session, folder, way, stacks)
    ends = time.monotonic() + _CHILD_SECONDS
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > ends:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            stacks.seek(0)
            return {
                "forks": 1,
                "hung_children": 1,
                "failures": [f"{way}: hung", stacks.read().splitlines()],
            }
        time.sleep(0.0005)
    code = os.waitstatus_to_exitcode(status)
    found: Totals = {
        "forks": 1,
        "hung_children": 0,
        "failed_children": int(code not in (0, 3)),
        "inherited_descriptors": int(code == 3),
    }
    return found | ({"failures": [f"{way}: {code}"]} if code else {})


def _child(session: Any, folder: Path, way: str, stacks: IO[str]) -> None:
    """What a child may come to do with what it inherited; never returns."""
    code = 2
    faulthandler.dump_traceback_later(_CHILD_SECONDS / 2, file=stacks)
    try:
        if _inherited(folder):
            os._exit(3)
        if way == "twice" and os.fork():
            os._exit(0)
        if way in ("record", "twice"):
            _record(session)
        elif way == "cell":
            shell().run_cell(f"text = {MARK!r}")
        elif way == "atexit":
            atexit._run_exitfuncs()
        code = 3 if _inherited(folder) else 0
    finally:
        os._exit(code)


def _record(session: Any) -> None:
    """Everything that writes, on the parent's own objects."""
    session.emit(MARK)
    session.libraries.refresh_growth()
    session._sampled(Sample(1, time.monotonic(), time.time(), {}))
    session._write_guard_state()
    shield.note_problem("in a child", "busy child")
    session._at_exit(MARK)


def _inherited(folder: Path) -> list[str]:
    """Descriptors of the recording in this process.

    Two kinds do not count: fd 2, the native stderr, is everybody's; and a header that another thread was writing at the
    moment of the fork, which nothing in the child has the number of.
    """
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if number == "2" or os.path.basename(target).startswith(
                ("header.json", ".header.json")
            ):
                continue
            if target.startswith(str(folder)):
                found.append(target)
    return found


@contextlib.contextmanager
def _busy(session: Any) -> Iterator[None]:
    """Threads that hold every lock of ours again and again."""
    stop = threading.Event()
    recording = session.recording

    def hammer(act: Any) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            act(count)
            if count % 5 == 0:
                time.sleep(0.001)

    acts = (
        lambda n: session.emit("busy", number=n, text="x" * 2000),
        lambda n: recording.write_header({"busy": n}),
        lambda n: recording.set_progress({"what": "fit", "step": n}),
        lambda n: shield.note_problem("busy", f"busy {n % 100}"),
    )
    threads = [threading.Thread(target=hammer, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join()


def main() -> int:
    """The command line."""
    arguments = options("Forks a guarded process.", count=10000).parse_args()
    totals = long_run(
        functools.partial(work, arguments.seed),
        arguments.count,
        settings={"rig": "forks", "seed": arguments.seed},
        piece=500,
        jobs=arguments.jobs,
        state=arguments.state,
        stall_seconds=2 * _CHILD_SECONDS,
    )
    return show(totals, as_json=arguments.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
