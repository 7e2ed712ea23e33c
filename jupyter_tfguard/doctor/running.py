"""The kernels of this user that run now, as the process table shows them. Linux only."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..collectors.procfs import read_environ, read_text
from ..errors import SourceUnavailable
from ..kernelspecs.command import config_file_of, python_command
from ..places import DIRECTORY_VARIABLE, recordings_folder
from .environment import Environment

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class RunningKernel:
    """One ipykernel process.

    Attributes:
        pid: Its process id.
        start_time: Clock ticks since boot.
        started: Unix seconds.
        argv: Its command line.
        environ: The environment it was started with.
    """

    pid: int
    start_time: int
    started: float
    argv: tuple[str, ...]
    environ: dict[str, str]

    @property
    def title(self) -> str:
        """How people know it: by its notebook."""
        notebook = self.environ.get("JPY_SESSION_NAME")
        return (
            f"{os.path.basename(notebook)} (process {self.pid})"
            if notebook
            else f"process {self.pid}"
        )

    @property
    def prefix(self) -> Path | None:
        """The environment it runs in, by the path of its interpreter; None when that is no path of an environment."""
        python = Path(self.argv[0])
        prefix = python.parent.parent
        marks = (prefix / "pyvenv.cfg", prefix / "conda-meta")
        return prefix if python.is_absolute() and any(mark.exists() for mark in marks) else None

    @property
    def config_file(self) -> Path | None:
        """The file that `jupyter tfguard enable` had it read; None when it was not given the guard so."""
        return config_file_of(self.argv)

    @property
    def kernel_name(self) -> str | None:
        """The name of its kernel specification; None when its connection file does not tell."""
        for before, word in zip(self.argv, self.argv[1:], strict=False):
            if before == "-f":
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    name = json.loads(Path(word).read_text(encoding="utf-8")).get("kernel_name")
                    return str(name) if name else None
        return None

    @property
    def is_recorded(self) -> bool:
        """True when there is a recording of it."""
        roots = [recordings_folder()]
        if self.environ.get(DIRECTORY_VARIABLE):
            roots.append(Path(self.environ[DIRECTORY_VARIABLE]) / "recordings")
        if self.environ.get("JUPYTER_DATA_DIR"):
            roots.append(Path(self.environ["JUPYTER_DATA_DIR"]) / "tfguard" / "recordings")
        return any((root / f"{self.pid}-{self.start_time}").is_dir() for root in roots)


def running_kernels(machine: Environment) -> Iterator[RunningKernel]:
    """Those whose environment may be read."""
    proc = machine.path("/proc")
    booted = _boot_time(proc)
    for folder in sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            if folder.stat().st_uid != os.geteuid():
                continue
            argv = _words(folder / "cmdline")
            if python_command(argv) is None:
                continue
            # Field 22 of the line; the name before it may hold spaces and brackets.
            ticks = int(read_text(str(folder / "stat")).rpartition(")")[2].split()[19])
            environ = read_environ(str(folder / "environ"))
        except (OSError, SourceUnavailable, ValueError, IndexError):
            continue  # it has ended, or is not ours to look at
        yield RunningKernel(int(folder.name), ticks, booted + ticks / _TICKS, argv, environ)


def _words(file: Path) -> tuple[str, ...]:
    return tuple(word for word in read_text(str(file)).split("\0") if word)


def _boot_time(proc: Path) -> float:
    """Unix seconds; finer than the ``btime`` of /proc/stat. Sample of /proc/uptime: ``2255.78 4301.60``"""
    return time.time() - float(read_text(str(proc / "uptime")).split()[0])
