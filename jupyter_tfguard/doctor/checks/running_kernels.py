"""Checks that every running kernel has the guard, and if not, why. Linux only."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...config import load_settings
from ...errors import KernelSpecUnusable, SettingsUnreadable, SourceUnavailable
from ...kernelspecs.command import (
    STARTUP_FILE,
    config_file_of,
    enable_command,
    is_wrapped,
    python_command,
)
from ...kernelspecs.found import FoundSpec, kernel_spec
from ...places import (
    DIRECTORY_VARIABLE,
    DISABLE_VARIABLE,
    disabled_by_environment,
    recordings_folder,
)
from ...procfs import read_environ, read_text
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "running kernels"
_STARTING_SECONDS = 15.0
_CLOCK_SECONDS = 0.1  # start times are in ticks, and file times come from another clock
_SHOWN_COUNT = 5
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class RunningKernel:
    """One ipykernel process.

    Attributes:
        pid: Its process id.
        start_time: Clock ticks since boot.
        started: Start time, Unix seconds.
        argv: Its command line.
        environ: Its environment at the start.
    """

    pid: int
    start_time: int
    started: float
    argv: tuple[str, ...]
    environ: dict[str, str]

    @property
    def title(self) -> str:
        """Its notebook and process id."""
        notebook = self.environ.get("JPY_SESSION_NAME")
        return (
            f"{os.path.basename(notebook)} (process {self.pid})"
            if notebook
            else f"process {self.pid}"
        )

    @property
    def prefix(self) -> Path | None:
        """Its environment, from the path of its interpreter; None if the path is not in an environment."""
        python = Path(self.argv[0])
        prefix = python.parent.parent
        marks = (prefix / "pyvenv.cfg", prefix / "conda-meta")
        return prefix if python.is_absolute() and any(mark.exists() for mark in marks) else None

    @property
    def config_file(self) -> Path | None:
        """The configuration file set by `jupyter tfguard enable`; None if it was not enabled that way."""
        return config_file_of(self.argv)

    @property
    def kernel_name(self) -> str | None:
        """The name of its kernel specification, from its connection file; None if unknown."""
        for before, word in zip(self.argv, self.argv[1:], strict=False):
            if before == "-f":
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    name = json.loads(Path(word).read_text(encoding="utf-8")).get("kernel_name")
                    return str(name) if name else None
        return None

    @property
    def is_recorded(self) -> bool:
        """True if there is a recording of this kernel."""
        roots = [recordings_folder()]
        if self.environ.get(DIRECTORY_VARIABLE):
            roots.append(Path(self.environ[DIRECTORY_VARIABLE]) / "recordings")
        if self.environ.get("JUPYTER_DATA_DIR"):
            roots.append(Path(self.environ["JUPYTER_DATA_DIR"]) / "tfguard" / "recordings")
        return any((root / f"{self.pid}-{self.start_time}").is_dir() for root in roots)


def check(machine: Environment) -> list[CheckResult] | None:
    """Compare the process table with the recordings. The kernels receive no requests."""
    if machine.system != "linux" or not _wanted():
        return None
    started_up = [
        k for k in running_kernels(machine) if time.time() - k.started > _STARTING_SECONDS
    ]
    bare = [kernel for kernel in started_up if not kernel.is_recorded]
    if not started_up:
        return None
    if not bare:
        count = (
            "1, with the guard"
            if len(started_up) == 1
            else f"{len(started_up)}, each with the guard"
        )
        return [CheckResult(NAME, Status.OK, count)]
    results = [_result(machine, kernel) for kernel in bare[:_SHOWN_COUNT]]
    if len(bare) > _SHOWN_COUNT:
        text = f"{len(bare) - _SHOWN_COUNT} more kernels have no guard"
        results.append(CheckResult(NAME, Status.WARNING, text))
    return results


def _wanted() -> bool:
    try:
        return load_settings().active
    except SettingsUnreadable:
        return True


def _result(machine: Environment, kernel: RunningKernel) -> CheckResult:
    why, fix = _why(machine, kernel)
    return CheckResult(NAME, Status.WARNING, f"{kernel.title} has no guard: {why}", fix)


def _why(machine: Environment, kernel: RunningKernel) -> tuple[str, str | None]:
    """Why a kernel has no recording, as far as files show, and what to do."""
    if disabled_by_environment(kernel.environ):
        return f"{DISABLE_VARIABLE} is set in its environment", f"unset {DISABLE_VARIABLE}"
    spec, given = _spec_of(kernel), kernel.config_file
    enable = enable_command(spec.name, spec.argv) if spec is not None else None
    fix = enable or f"{kernel.argv[0]} -m pip install jupyter-tfguard"
    if given is not None and not given.is_file():
        return f"it loads one that no longer exists ({given})", fix
    prefix = kernel.prefix
    if given is not None or prefix is None:
        return "run `%load_ext tfguard` in it, which loads the guard or prints why it cannot", None
    try:
        installed = (prefix / STARTUP_FILE).stat().st_ctime
    except OSError:
        if spec is not None and config_file_of(spec.argv) is not None:
            text = (
                "it was started before `jupyter tfguard enable`. Shut it down, then start it again"
            )
            return text, None
        return f"its environment {prefix} has none", fix
    if installed > kernel.started + _CLOCK_SECONDS:
        return "it was started before the guard was installed. Restart it", None
    return "run `%load_ext tfguard` in it, which loads the guard or prints why it cannot", None


def _spec_of(kernel: RunningKernel) -> FoundSpec | None:
    """The kernel's specification; None if another Jupyter with other specifications started the kernel."""
    try:
        spec = kernel_spec(kernel.kernel_name or "")
    except KernelSpecUnusable:
        return None
    python = (python_command(spec.argv) or [""])[0]
    same = Path(python).parent == Path(kernel.argv[0]).parent
    return spec if same or is_wrapped(spec.argv) else None


def running_kernels(machine: Environment) -> Iterator[RunningKernel]:
    """The running kernels whose environment may be read."""
    proc = machine.path("/proc")
    # More precise than ``btime`` of /proc/stat. Sample of /proc/uptime: ``2255.78 4301.60``
    booted = time.time() - float(read_text(str(proc / "uptime")).split()[0])
    for folder in sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            if folder.stat().st_uid != os.geteuid():
                continue
            argv = tuple(filter(None, read_text(str(folder / "cmdline")).split("\0")))
            if python_command(argv) is None:
                continue
            # Field 22 of the line. The process name before it may contain spaces and brackets.
            ticks = int(read_text(str(folder / "stat")).rpartition(")")[2].split()[19])
            environ = read_environ(str(folder / "environ"))
        except (OSError, SourceUnavailable, ValueError, IndexError):
            continue  # the process has ended, or may not be read
        yield RunningKernel(int(folder.name), ticks, booted + ticks / _TICKS, argv, environ)
