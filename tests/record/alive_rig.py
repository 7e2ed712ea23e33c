"""Processes that record and nothing else, to be judged alive or dead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_tfguard.record.identity import ProcessIdentity

linux = pytest.mark.skipif(sys.platform != "linux", reason="pid namespaces and procfs are Linux's")

# A kernel's recorder and nothing else. Told on stdin to go on, it says what it did on stdout.
WRITER = """
import json, os, sys
from pathlib import Path
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
me = ProcessIdentity.of(os.getpid())
metrics = [Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm")]
recording = Recording(Path(sys.argv[1]), me, json.loads(sys.argv[2]), metrics)
recording.event("cell_start", execution_count=1, head="x")
print(me.folder_name, flush=True)
exec(sys.stdin.readline())
"""
WAIT = "sys.stdin.read()"


class Writer:
    """A process that records below `root`; in a pid namespace of its own if asked."""

    def __init__(
        self, root: Path, then: str = WAIT, *, header: str = "{}", namespace: bool = False
    ) -> None:
        front = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] if namespace else []
        self.process = subprocess.Popen(
            [*front, sys.executable, "-c", WRITER, str(root), header],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{then}\n")
        self.process.stdin.flush()
        self.path = root / self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def identity(self) -> ProcessIdentity:
        found = ProcessIdentity.from_folder_name(self.path.name)
        assert found is not None
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


def namespaces_work() -> bool:
    """True where this user may make a pid namespace."""
    if shutil.which("unshare") is None:
        return False
    made = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False
    )
    return made.returncode == 0


def age(folder: Path, seconds: float) -> None:
    """Make a recording look as if nothing had changed for so long."""
    long_ago = time.time() - seconds
    for path in (*folder.iterdir(), folder):
        os.utime(path, (long_ago, long_ago))
