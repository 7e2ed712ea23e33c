"""The programs of ``survival.py``: how one is read, run in a kernel of its own, and judged.

A program is a Python file in percent format. Cells titled ``setup`` run first; a cell titled ``retry`` runs in the same kernel
after the guard has stopped one. A line ``# needs: scipy, torch`` names packages without which the program is skipped. Magics
are written as comments (``# %time``), as jupytext writes them.
"""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.survival_kernel import LIMIT_BYTES, CellRun, LimitedKernel

FOLDER = Path(__file__).parent / "survival"
CELL_SECONDS = 150.0
_CELL = re.compile(r"^# %%(?!%)(?:[ \t]+(.*))?$", re.MULTILINE)
_MAGIC = re.compile(r"^# (%{1,2}\w.*)$", re.MULTILINE)
_NEEDS = re.compile(r"^# needs: (.+)$", re.MULTILINE)
_DIGEST = re.compile(r"^digest: (.*)$", re.MULTILINE)
_KINDS = ("killing", "healthy")


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        kind: "killing" or "healthy".
        version: A hash of the text; earlier runs of another text do not count.
        cells: Title and code, in the order of the file.
    """

    name: str
    kind: str
    version: str
    needs: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path, kind: str = "") -> Program:
        """Read a file; one of the user's own counts as killing."""
        text = path.read_text(encoding="utf-8")
        parts = _CELL.split(text)
        needs = _NEEDS.search(text)
        return cls(
            path.stem,
            kind or (path.parent.name if path.parent.name in _KINDS else "killing"),
            hashlib.sha256(text.encode()).hexdigest()[:8],
            tuple(re.split(r",\s*", needs[1])) if needs else (),
            tuple(
                ((title or "").strip().lower(), _MAGIC.sub(r"\1", code).strip())
                for title, code in zip(parts[1::2], parts[2::2], strict=True)
            ),
        )

    @property
    def held_out(self) -> bool:
        """True for the third that nobody reads while the guard is tuned: decided by the name alone."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 3 == 0

    def missing(self, python: str) -> list[str]:
        """The packages that it needs and this interpreter lacks."""
        return [name for name in self.needs if not _has(python, name)]


@dataclass(slots=True)
class Run:
    """One run of a program at one level: a line of the results file.

    Attributes:
        outcome: "raised", "died", "hung" or "finished"; "setup failed" is a fault of the program.
        error: Type and first line of the exception, or how the kernel ended.
        stop_seconds: From the threshold to the exception, where the guard says so.
        peak_fraction: Highest use without file cache, of the limit.
        cpu_seconds: Of the kernel's process.
        pair_seconds, pair_cpu_seconds: Of the run without a guard right before or after this one; None for a killing program.
        retried: True when the retry cell worked; None when it was not run.
    """

    name: str
    kind: str
    level: str
    version: str
    outcome: str = "finished"
    error: str = ""
    stop_seconds: float | None = None
    peak_fraction: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    pair_seconds: float | None = None
    pair_cpu_seconds: float | None = None
    retried: bool | None = None
    retry_error: str = ""
    digest: str = ""

    def json(self) -> dict[str, Any]:
        """As a line of the results file."""
        return asdict(self)


def programs() -> list[Program]:
    """All programs of the benchmark, the killing ones first."""
    return [
        Program.read(path, kind) for kind in _KINDS for path in sorted((FOLDER / kind).glob("*.py"))
    ]


def run(program: Program, level: str, python: str) -> Run:
    """Run a program in a new kernel."""
    found = Run(program.name, program.kind, level, program.version)
    setup = [code for title, code in program.cells if title == "setup"]
    body = [code for title, code in program.cells if title not in ("setup", "retry")]
    retry = [code for title, code in program.cells if title == "retry"]
    # A virtual machine returns free memory to its host; the first use after that takes ten times as long. With only
    # as much as the limit, some runs still took long.
    warm = b"\1" * (2 * LIMIT_BYTES) if program.kind == "healthy" else b""
    with LimitedKernel(level, python) as kernel:
        for code in setup:
            ran = kernel.run(code, seconds=CELL_SECONDS)
            if ran.ended != "ok":
                found.outcome, found.error = "setup failed", ran.error or kernel.ending()
                return found
        del warm
        for code in body:
            ran = kernel.run(code, seconds=CELL_SECONDS)
            _add(found, ran)
            if ran.ended != "ok":
                break
        if ran.ended == "error" and kernel.is_alive:
            found.outcome, found.error = "raised", ran.error
            found.stop_seconds = kernel.last_stop_seconds()
            for code in retry:
                again = kernel.run(code, seconds=CELL_SECONDS)
                found.retried = again.ended == "ok"
                found.retry_error = again.error or kernel.ending()
        elif ran.ended != "ok":
            found.outcome = ran.ended if ran.ended == "hung" else "died"
            found.error = f"{kernel.ending()}, {kernel.oom_kills()} OOM kills"
        found.peak_fraction = round(kernel.peak_bytes / LIMIT_BYTES, 4)
    return found


def _add(found: Run, ran: CellRun) -> None:
    found.seconds = round(found.seconds + ran.seconds, 3)
    found.cpu_seconds = round(found.cpu_seconds + (ran.cpu_seconds or 0.0), 3)
    digests = _DIGEST.findall(ran.text)
    found.digest = " ".join([found.digest, *digests]).strip()


@functools.cache
def _has(python: str, package: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0
