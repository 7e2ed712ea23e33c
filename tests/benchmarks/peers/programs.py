"""Tools of the terminal: memray around a script, and papermill around a notebook."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.container import container
from tests.benchmarks.peers.deaths import Death
from tests.benchmarks.peers.watching import Gate, Said
from tests.conftest import private_jupyter

_PROFILE = "profile.bin"
_WRITTEN = "written.ipynb"
# Ctrl-C must reach the program and leave the shell, which then prints the exit code.
_SHELL = "trap : INT\n{command}\necho exit code $?"
_STATS = re.compile(r"Peak memory usage:\s+(\S+).*?\(by size\):\s+- ([^\n]+)", re.DOTALL)


@dataclass(frozen=True)
class Program:
    """memray or papermill.

    Attributes:
        name: ``memray`` or ``papermill``.
        python: Of the peers' environment.
    """

    name: str
    python: str

    def play(self, death: Death, folder: Path) -> list[Said]:
        """What a terminal shows of a death, and what is found on disk afterwards."""
        gate = Gate(folder)
        with (
            private_jupyter(folder),
            container(folder, self.python, death.limit_bytes) as python,
            self._terminal(python, gate, death) as terminal,
        ):
            gate.open(death, terminal.read)
            said = gate.observe(terminal.read, terminal.interrupt if death.restarted else None)
        return said + (self._profile(folder) if self.name == "memray" else _notebook(folder))

    @contextlib.contextmanager
    def _terminal(self, python: str, gate: Gate, death: Death) -> Iterator[Terminal]:
        folder = gate.folder
        if self.name == "memray":
            script = folder / "script.py"
            script.write_text(f"{gate.code}\n{death.code}")
            command = [
                python,
                "-m",
                "memray",
                "run",
                "-q",
                "-o",
                str(folder / _PROFILE),
                "script.py",
            ]
        else:
            _write_notebook(folder / "input.ipynb", gate.code, death.code)
            command = [python, "-m", "papermill", "input.ipynb", _WRITTEN]
        terminal = Terminal(folder, command)
        try:
            yield terminal
        finally:
            terminal.close()

    def _profile(self, folder: Path) -> list[Said]:
        if not (folder / _PROFILE).exists():
            return [Said("profile", "no file")]
        done = subprocess.run(
            [self.python, "-m", "memray", "stats", str(folder / _PROFILE)],
            capture_output=True,
            text=True,
            check=False,
        )
        found = _STATS.search(done.stdout)
        text = done.stderr if found is None else f"peak {found[1]}; largest: {found[2]}"
        return [Said("profile", text)]


class Terminal:
    """A shell that runs one command, with everything that it prints in a file.

    Args:
        folder: Where it runs.
        command: The command.
    """

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._shown = folder / "terminal.txt"
        with self._shown.open("wb") as output:
            self._process = subprocess.Popen(
                ["bash", "-c", _SHELL.format(command=shlex.join(command))],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def read(self) -> Iterable[tuple[str, str]]:
        """Lines that are shown so far; progress bars are left out."""
        text = self._shown.read_text(errors="replace").replace("\r", "\n")
        for line in text.splitlines():
            # Four spaces begin a line of code in a traceback.
            if line.strip() and not line.startswith("    ") and "%|" not in line:
                yield "terminal", re.sub(r"^bash: line \d+: +\d+ ", "", line).strip()

    def interrupt(self) -> None:
        """As Ctrl-C does it."""
        os.killpg(self._process.pid, signal.SIGINT)

    def close(self) -> None:
        """End what still runs there."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _write_notebook(path: Path, *cells: str) -> None:
    written = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [],
            "source": cell,
        }
        for number, cell in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    path.write_text(json.dumps(content | {"nbformat_minor": 5}))


def _notebook(folder: Path) -> list[Said]:
    """Outputs and state of the cells in the file that papermill wrote."""
    path = folder / _WRITTEN
    if not path.exists():
        return [Said("written notebook", "no file")]
    cells = json.loads(path.read_text())["cells"]
    states = [
        f"cell {number}: {cell['metadata'].get('papermill', {}).get('status', 'unknown')}, "
        f"{_outputs(cell)}"
        for number, cell in enumerate((c for c in cells if c["cell_type"] == "code"), 1)
    ]
    return [Said("written notebook", "; ".join(states))]


def _outputs(cell: dict[str, Any]) -> str:
    """Number of outputs, and the error among them with the user's own lines of its traceback."""
    found = f"{len(cell['outputs'])} outputs"
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            plain = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output["traceback"]))
            frames = re.findall(r"Cell In\[\d+\], line \d+, in (\w+)", plain)
            found += ", " + " in ".join([output["ename"], *frames[-1:]])
    return found
