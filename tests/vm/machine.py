"""One boot of a small virtual machine that shares this machine's files read-only, and what its guest said.

The guest is User Mode Linux: a Linux that runs as an ordinary program, at nearly the speed of this machine. It needs no
KVM, no disk image and no modules. It has one processor and no network but its own loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = "linux.uml"
ROOT = Path(__file__).parents[2]

# The first process. The guest has its own /proc, /sys, /dev and /run, and nothing but cgroup v2. It writes results into a
# folder of this machine, and ends by switching the machine off, whatever the program in it did.
_INIT = """#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs -o size=100% none /run
mkdir /dev/shm; mount -t tmpfs none /dev/shm
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
mkdir /run/home /run/results; mount -t hostfs none /run/results -o {results}
{program}
echo "the guest's program ended with exit code $?"
echo o > /proc/sysrq-trigger
sleep 60
"""


class NoVirtualMachine(Exception):
    """No guest can be booted here; the text says what is missing."""


@dataclass
class Boot:
    """What one boot gave.

    Attributes:
        lines: The results, in order.
        console: The end of the guest's console: OS kernel, and whatever its program printed.
        seconds: From its start to its end.
        timed_out: True when it had to be ended.
    """

    lines: list[dict[str, Any]]
    console: str
    seconds: float
    timed_out: bool = False


def boot(
    folder: Path,
    module: str,
    *,
    silence_seconds: float,
    arguments: tuple[str, ...] = (),
    memory_mib: int = 1024,
) -> Boot:
    """Boot, run a Python module of this repository with this environment's Python, and switch off.

    Args:
        folder: For the first process's script, the console and the results.
        module: The name of the module, run as a program.
        silence_seconds: A guest that prints nothing for so long is ended.
        arguments: Those of the program.
        memory_mib: The guest's memory, without swap.

    Raises:
        NoVirtualMachine: User Mode Linux is not installed.
    """
    if shutil.which(PROGRAM) is None:
        raise NoVirtualMachine(f"{PROGRAM} (package user-mode-linux) is not installed")
    console, results = folder / "console.txt", folder / "results/lines.jsonl"
    results.parent.mkdir()
    init = folder / "init"
    init.write_text(_script(results.parent, [sys.executable, "-m", module, *arguments]))
    init.chmod(0o755)
    root = ("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}")
    consoles = ("con=null", "con0=fd:0,fd:1", "ssl=null", "quiet", "panic=-1")
    # Its OS kernel and its processes hand over to each other at each system call: slower on two processors.
    command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), PROGRAM, f"mem={memory_mib}M"]
    started = time.monotonic()
    with console.open("wb") as out:
        machine = subprocess.Popen(
            [*command, *root, *consoles],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=os.environ | {"TMPDIR": str(_memory_folder(folder, memory_mib))},
            start_new_session=True,
        )
    timed_out = not _ends_while_it_speaks(machine, (console, results), silence_seconds)
    if timed_out:  # each of the guest's processes is one of this machine, in the same group
        os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()
    seconds = time.monotonic() - started
    tail = console.read_text(errors="replace")[-20_000:]
    return Boot(_json_lines(results), tail, seconds, timed_out)


def _script(results: Path, python: list[str]) -> str:
    variables = {
        "PATH": f"{sys.prefix}/bin:{os.defpath}",
        "HOME": "/run/home",
        "TMPDIR": "/run",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    setting = [f"{name}={value}" for name, value in variables.items()]
    program = f"cd {shlex.quote(str(ROOT))}; {shlex.join(['env', '-i', *setting, *python])}"
    return _INIT.format(results=shlex.quote(str(results)), program=program)


def _memory_folder(folder: Path, memory_mib: int) -> Path:
    """Where the file lies that is the guest's memory and code: in memory, where it has room and may be executed."""
    shared = Path("/dev/shm")
    with contextlib.suppress(OSError):
        about = os.statvfs(shared)
        if about.f_bavail * about.f_frsize > memory_mib << 20 and not about.f_flag & os.ST_NOEXEC:
            return shared
    return folder


def _ends_while_it_speaks(
    machine: subprocess.Popen[bytes], files: tuple[Path, ...], silence_seconds: float
) -> bool:
    """Wait for the guest's end as long as one of these files grows: true when it ended by itself."""
    size, last_word = 0, time.monotonic()
    while time.monotonic() - last_word < silence_seconds:
        with contextlib.suppress(subprocess.TimeoutExpired):
            machine.wait(1)
            return True
        grown = sum(file.stat().st_size for file in files if file.exists())
        if grown > size:
            size, last_word = grown, time.monotonic()
    return False


def _json_lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines; one that the end of the machine cut off is left out."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
