"""Two users on one machine: what B can do with what A keeps. Runs as root, each user in a process of its own.

    python tests/rigs/two_users.py PLACE

PLACE is a folder that both may enter. Prints one line of JSON: what B read, changed and achieved (all empty: nothing),
and how A answered to what B had planted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jupyter_tfguard.redact  # noqa: F401  (a user without rights may not be able to read our sources)
from jupyter_tfguard import shield
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.errors import TfGuardError
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.postmortem.detect import orphans
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import READ, BundleStore
from jupyter_tfguard.record.claims import claim
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.folders import PrivateFolder, remove_folder
from jupyter_tfguard.record.identity import ProcessIdentity, boot_id
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.watch.live import LiveReader

A, B = 61_001, 61_002
GONE = ProcessIdentity(4_194_305, 42)
METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, source="VmRSS"),)
SECRET = "a-cell-of-user-A"


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """What `work` gives back, run by that user in a child process.

    Raises:
        RuntimeError: It raised; with its traceback.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            told = {"done": work()}
        except BaseException:
            told = {"failed": traceback.format_exc()}
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = json.loads(pipe.read())
    os.waitpid(child, 0)
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found["done"]


def keep_something(data: Path) -> str:
    """User A: a report, a recording, a problem noted."""
    os.environ["TFGUARD_DIR"] = str(data)
    shield._noted.clear()
    root = data / "recordings"
    for identity in (GONE, ProcessIdentity(4_194_306, 43)):
        recording = Recording(root, identity, {"kernel_id": "k", "boot_id": boot_id()}, METRICS)
        recording.event("cell_start", execution_count=1, head=SECRET, cell_id=None, rss_bytes=1)
        recording.sample(Sample(1, 1.0, 1.0, {"process.rss_bytes": 1e9}))
        recording.close()
        if identity == GONE:
            [entry] = Postmortem(root, BundleStore(data / "bundles"), TfGuard()).handle_unwatched()
    shield.note_problem("a test", SECRET)
    return str(entry["id"])


def everything(data: Path) -> list[str]:
    """Names of all that lies there, with kind, rights, owner, size and time."""
    lines = []
    for path in (data, *sorted(data.rglob("*"))):
        found = path.lstat()
        told = stat.filemode(found.st_mode), found.st_uid, found.st_size, found.st_mtime_ns
        lines.append(f"{path} {told}")
    return lines


def try_all(data: Path, bundle_id: str, other_pid: int) -> list[str]:
    """User B: everything that our code can do, pointed at A's folder; and the plain system calls. What went through."""
    os.environ["TFGUARD_DIR"] = str(data)
    root, store = data / "recordings", BundleStore(data / "bundles")
    recording = root / "4194306-43"
    shield._noted.clear()
    tries: dict[str, Callable[[], Any]] = {
        "listed": lambda: os.listdir(data),
        "listed recordings": lambda: os.listdir(root),
        "read a file": lambda: (recording / "header.json").read_bytes(),
        "wrote a file": lambda: (data / "planted").write_text("x"),
        "ids": store.ids,
        "entries": store.entries,
        "entry": lambda: store.entry(bundle_id),
        "report": lambda: store.report(bundle_id),
        "bundle": lambda: store.bundle(bundle_id),
        "marked": lambda: store.mark(bundle_id, READ) or True,
        "removed": lambda: store.remove(bundle_id),
        "size": lambda: store.size_bytes(bundle_id),
        "leftovers": store.leftovers,
        "claimed": lambda: claim(recording),
        "orphans": lambda: orphans(root),
        "reported": lambda: Postmortem(root, store, TfGuard()).handle_unwatched(),
        "contents": lambda: read_recording(recording) and True,
        "live": lambda: LiveReader(recording).read().header,
        "folder": lambda: PrivateFolder(data).path and True,
        "recorded": lambda: Recording(root, ProcessIdentity(1, 1), {}, METRICS) and True,
        "problems": shield.read_problems,
        "removed folder": lambda: remove_folder(recording),
        "noted": lambda: shield.note_problem("planted", "by B"),
        "signalled": lambda: other_pid and (os.kill(other_pid, signal.SIGTERM) or True),
    }
    went_through = []
    for name, attempt in tries.items():
        try:
            if attempt():
                went_through.append(name)
        except (OSError, TfGuardError):
            pass
    return went_through


def plant(place: Path) -> None:
    """User B: a folder and a link where A would put the data folder, in a folder open to all."""
    (place / "folder").mkdir(mode=0o777)
    (place / "folder").chmod(0o777)
    (place / "link").symlink_to(place / "home-of-a")


def answers(place: Path) -> dict[str, str]:
    """User A: the sentence with which each planted data folder is refused."""
    told = {}
    for name in ("folder", "link"):
        os.environ["TFGUARD_DIR"] = str(place / name)
        shield._noted.clear()
        shield.note_problem("planted", SECRET)
        try:
            Recording(place / name / "recordings", GONE, {}, METRICS).close()
        except TfGuardError as bad:
            told[name] = str(bad)
        else:
            told[name] = "used"
    return told


def main() -> int:
    """From the command line."""
    place = Path(sys.argv[1])
    place.chmod(0o1777)
    # Once as root: what Python loads late may lie where the two cannot read.
    keep_something(place / "warm" / "tfguard")
    try_all(place / "warm" / "nothing", "", 0)
    shutil.rmtree(place / "warm")
    home = place / "home-of-a"
    home.mkdir()
    os.chown(home, A, A)
    home.chmod(0o755)  # as homes often are: it is the data folder itself that must be closed
    data = home / "tfguard"
    bundle_id = as_user(A, lambda: keep_something(data))
    kernel = os.fork()
    if kernel == 0:
        os.setuid(A)
        signal.pause()
    before = everything(data)
    went_through = as_user(B, lambda: try_all(data, bundle_id, kernel))
    changed = sorted(set(before) ^ set(everything(data)))
    alive = os.waitpid(kernel, os.WNOHANG) == (0, 0)
    as_user(B, lambda: plant(place))
    refused = as_user(A, lambda: answers(place))
    of_a = [str(path) for path in (place / "folder").rglob("*") if path.lstat().st_uid == A]
    os.kill(kernel, signal.SIGKILL)
    os.waitpid(kernel, 0)
    told = {
        "bundle": bundle_id,
        "kept": len(before),
        "went_through": went_through,
        "changed": changed,
        "kernel_alive": alive,
        "refused": refused,
        "of_a_at_b": of_a,
        "at_home": sorted(os.listdir(home)),
    }
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
