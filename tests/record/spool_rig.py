"""Programs that keep their native text with a spool, started as processes of their own. Not a test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conftest import without_pytest

HEAD = """
import ctypes, os, re, resource, signal, subprocess, sys, threading, time
from pathlib import Path
from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record import spool as spool_module, outlet as outlet_module, native_text, textfile as textfile_module
from jupyter_tfguard.record.spool import StderrSpool
problems, dropped = [], []
folder = Path(sys.argv[1])
spool = StderrSpool(PrivateFolder(folder), problems.append, dropped.append)
def sizes():
    found = [os.fstat(file.descriptor) for file in (spool._pair.current, spool._pair.other)]
    return max(f.st_size for f in found), max(f.st_blocks * 512 for f in found)
passed = bytearray()
class Outlet(outlet_module.Outlet):
    def put(self, text):
        super().put(text)
        passed.extend(text)
spool_module.Outlet = Outlet
def heard(text):
    settled(lambda: text in passed)
def settled(check, seconds=30.0):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not settle"
        time.sleep(0.01)
"""

# A function that writes lines in a loop of its own: through PyDLL the GIL is held all the while, through CDLL it is not.
LINES_C = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
long write_lines(long count, int length, int fd) {
    char line[4096];
    long written = 0;
    for (long n = 0; n < count; n++) {
        memset(line, '.', sizeof line);
        int head = snprintf(line, sizeof line, "line %09ld", n);
        line[head] = '.';
        line[length - 1] = '\\n';
        written += write(fd, line, length);
    }
    return written;
}
"""


def program(folder: Path, body: str) -> list[str]:
    """Command line of a program; `body` runs after HEAD, which makes `spool` but does not start it."""
    return [sys.executable, "-W", "error", "-c", HEAD + textwrap.dedent(body), str(folder)]


def run(
    folder: Path, body: str, *, before: str = "", timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program whose old fd 2 is a pipe to us, as ipykernel's is to itself.

    Args:
        before: Shell commands that come first in the same process, for instance ``ulimit -f 64``.
    """
    command = program(folder, body)
    if before:
        command = ["bash", "-c", f'{before}; exec "$@"', "bash", *command]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=without_pytest(os.environ)
    )


def run_on_a_small_disk(
    disk: Path, size: str, body: str, *, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program on a real tmpfs of `size` that only it sees."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare(1) to make a small disk of its own")
    disk.mkdir()
    mount = f'mount -t tmpfs -o size={size},mode=0700 none {disk} || exit 77; exec "$@"'
    ways = [["unshare", "-m"], ["unshare", "-Urm"]] if os.geteuid() == 0 else [["unshare", "-Urm"]]
    for way in ways:
        ran = subprocess.run(
            [*way, "sh", "-c", mount, "sh", *program(disk, body)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=without_pytest(os.environ),
        )
        if not (ran.returncode in (1, 77) and re.search("unshare|mount", ran.stderr)):
            return ran
    pytest.skip(f"this machine lets nobody mount a small disk: {ran.stderr.strip()[:100]}")


def kept(folder: Path) -> str:
    """What lies in the files, oldest first."""
    paths = sorted(folder.glob("stderr.*.txt"), key=lambda path: int(path.name.split(".")[1]))
    return b"".join(path.read_bytes() for path in paths).replace(b"\0", b"").decode()


def lines_library(folder: Path) -> Path:
    """The function `write_lines(count, length, fd)`, compiled."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (folder / "lines.c").write_text(LINES_C)
    library = folder / "lines.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", library, folder / "lines.c"], check=True
    )
    return library


GAP = re.compile(r"\n?\[tfguard: (.+?) of native text were not passed on\]\n")
