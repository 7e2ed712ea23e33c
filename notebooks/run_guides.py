"""Runs the guides as a user does: cell by cell, in a kernel that really dies and that Jupyter starts again.

nbclient runs the cells, in a kernel of a real Jupyter server: nbclient starts kernels itself, but then nothing sees from
outside how they end, and a report says "likely" where users of JupyterLab read "certain".

Cell tags: ``dies``: the kernel must end in this cell. ``reports``: the kernel survives, and a report must come, as of a
child that was killed. ``raises-exception``: the cell may raise an error.

    python -m notebooks.run_guides [NAME ...] [--write]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import nbformat
import psutil
from jupyter_client.asynchronous import AsyncKernelClient
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from jupyter_tfguard.demo.own_limit import remove_left_groups
from jupyter_tfguard.demo.server import DemoServer
from notebooks.stored_outputs import normalise

GUIDES = Path(__file__).parent / "guides"
DIES, REPORTS = "dies", "reports"
# Many times what an idle machine needs: the tests run six processes on two cores.
_CELL_SECONDS = 900
_WAIT_SECONDS = 300.0
_POLL_SECONDS = 0.1

Found = TypeVar("Found")


class GuideFailed(Exception):
    """A guide did not do what it says; the text names the cell."""


@dataclass
class GuideRun:
    """A guide that was run to its end.

    Attributes:
        notebook: With its outputs.
        deaths: The report of each tagged cell by its id, as ``GET /tfguard/api/crashes/ID`` returns it.
    """

    notebook: Any
    deaths: dict[str, dict[str, Any]] = field(default_factory=dict)

    def source(self, cell_id: str) -> str:
        """What is in the cell."""
        return str(self._cell(cell_id).source)

    def text(self, cell_id: str) -> str:
        """All that the cell printed, and its result; of an error the name and the message."""
        parts = []
        for output in self._cell(cell_id).outputs:
            if output.output_type == "stream":
                parts.append(output.text)
            elif output.output_type == "error":
                parts.append(f"{output.ename}: {output.evalue}")
            else:
                parts.append(output.data.get("text/plain", ""))
        return "".join(parts)

    def _cell(self, cell_id: str) -> Any:
        (cell,) = (cell for cell in self.notebook.cells if cell["id"] == cell_id)
        return cell


class _ServedKernel:
    """A kernel of a Jupyter server, with as much of a kernel manager's interface as nbclient uses."""

    has_kernel = True

    def __init__(self, server: DemoServer, notebook: Path) -> None:
        self.server = server
        self.session = server.start_session(notebook)
        self.id = str(self.session["kernel"]["id"])
        self.process = self._wait_for_process(before=None)

    def client(self) -> AsyncKernelClient:
        """A client of the kernel's present process."""
        client = _Client(self.process)
        client.load_connection_file(str(self.server.runtime / f"kernel-{self.id}.json"))
        return client

    def wait_for_report(self, known: set[str]) -> dict[str, Any]:
        """The first report about this kernel that is not among the `known` ones."""

        def new() -> dict[str, Any] | None:
            for entry in self.server.get("tfguard/api/crashes")["crashes"]:
                if entry["kernel_id"] == self.id and entry["id"] not in known:
                    report: dict[str, Any] = self.server.get(f"tfguard/api/crashes/{entry['id']}")
                    return report
            return None

        return self._wait_for(new, "report about the kernel")

    def wait_for_restart(self) -> None:
        """Return when Jupyter has started the kernel again."""
        self.process = self._wait_for_process(before=self.process)

    def _wait_for_process(self, before: psutil.Process | None) -> psutil.Process:
        def guarded() -> psutil.Process | None:
            for kernel in self.server.get("tfguard/api/status")["kernels"]:
                if kernel["kernel_id"] == self.id and kernel["guard"]["loaded"]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process = psutil.Process(kernel["pid"])
                        return None if process == before else process
            return None

        return self._wait_for(guarded, "guarded kernel")

    def _wait_for(self, ask: Callable[[], Found | None], what: str) -> Found:
        ends = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < ends:
            with contextlib.suppress(OSError):
                if (found := ask()) is not None:
                    return found
            time.sleep(_POLL_SECONDS)
        raise GuideFailed(
            f"No {what} within {_WAIT_SECONDS:.0f} s. The server's log ends:\n{self.server.log_tail()}"
        )


class _Client(AsyncKernelClient):  # type: ignore[misc]
    """Whether the kernel lives is read from its process: the server starts a dead one again, and the heart beats on."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__()
        self._process = process

    async def is_alive(self) -> bool:
        try:
            return bool(self._process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    _async_is_alive = is_alive


class _GuideClient(NotebookClient):  # type: ignore[misc]
    """Goes on with the next cell, in the kernel's next process, after a cell that is tagged ``dies``."""

    def __init__(self, run: GuideRun, kernel: _ServedKernel) -> None:
        super().__init__(run.notebook, km=kernel, timeout=_CELL_SECONDS, record_timing=False)
        self._run = run
        self._kernel = kernel

    async def async_execute_cell(self, cell: Any, cell_index: int, **more: Any) -> Any:
        """Run one cell.

        Raises:
            GuideFailed: The kernel died in a cell without the tag, or is still running after one with it.
        """
        tags = cell.metadata.get("tags", [])
        try:
            done = await super().async_execute_cell(cell, cell_index, **more)
        except DeadKernelError as dead:
            report = self._next_report()
            if DIES not in tags:
                raise GuideFailed(
                    f"The kernel died in cell {cell['id']}: {report['title']}"
                ) from dead
            self._run.deaths[cell["id"]] = report
            await self._connect_again()
            return cell
        if DIES in tags:
            raise GuideFailed(f"The kernel is still running after cell {cell['id']}.")
        if REPORTS in tags:
            self._run.deaths[cell["id"]] = self._next_report()
        return done

    def _next_report(self) -> dict[str, Any]:
        return self._kernel.wait_for_report({report["id"] for report in self._run.deaths.values()})

    async def _connect_again(self) -> None:
        self._kernel.wait_for_restart()
        self.kc.stop_channels()
        self.code_cells_executed = 0
        await self.async_start_new_kernel_client()


def run_guide(path: Path) -> GuideRun:
    """Run a guide in a server and a data folder of its own.

    Raises:
        GuideFailed: See :meth:`_GuideClient.async_execute_cell`.
        nbclient.exceptions.CellExecutionError: A cell raised an error that is not expected.
    """
    run = GuideRun(nbformat.read(path, as_version=4))
    work = Path(tempfile.mkdtemp(prefix="tfguard-guide-"))
    try:
        with _private_folders(work / "home"):
            server = DemoServer(work / "notebooks", lab=False)
            try:
                shutil.copy(path, server.work)
                kernel = _ServedKernel(server, server.work / path.name)
                client = _GuideClient(run, kernel)
                try:
                    client.execute()
                finally:
                    if client.kc is not None:
                        client.kc.stop_channels()
            finally:
                server.stop()
        normalise(run.notebook, work)
        return run
    finally:
        remove_left_groups()
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _private_folders(home: Path) -> Iterator[None]:
    """The environment of a new user: nothing is read from the folders of the real one, or written there."""
    private = {
        "TFGUARD_DIR": home / "tfguard",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "IPYTHONDIR": home / "ipython",
    }
    with patch.dict(os.environ):
        # ipykernel leaves the output of native code alone where it finds pytest's variables.
        for name in [n for n in os.environ if n.startswith(("TFGUARD_", "PYTEST_", "JPY_", "TF_"))]:
            del os.environ[name]
        os.environ.update({name: str(path) for name, path in private.items()})
        yield


def guide_paths(names: list[str] | None = None) -> list[Path]:
    """The guides whose file names begin with one of `names`; all of them where none is named."""
    paths = sorted(GUIDES.glob("*.ipynb"))
    return [path for path in paths if not names or path.name.startswith(tuple(names))]


def main(arguments: list[str] | None = None) -> int:
    """Run guides, and store their outputs if asked to."""
    parser = argparse.ArgumentParser(description="Run the guides: each cell, each death, each fix.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="how its file name begins")
    parser.add_argument("--write", action="store_true", help="store the outputs in the notebooks")
    chosen = parser.parse_args(arguments)
    paths = guide_paths(chosen.names)
    if not paths:
        parser.error(f"no guide in {GUIDES} begins with {' or '.join(chosen.names)}")
    for path in paths:
        began = time.monotonic()
        run = run_guide(path)
        if chosen.write:
            nbformat.write(run.notebook, path)
        causes = ", ".join(
            f"{cell}: {report['cause']} ({report['confidence']})"
            for cell, report in run.deaths.items()
        )
        print(f"{path.name}: {time.monotonic() - began:.0f} s; {causes or 'no death'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
