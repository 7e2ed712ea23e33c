"""JupyterLab on a machine with GPUs: the server finds a stand-in for NVIDIA's library (`tests/rigs/nvml`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.conftest import Lab, lab_server
from tests.rigs.nvml.library import environ
from tests.rigs.nvml.scenario import Scenario
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from jupyter_tfguard.demo.server import DemoServer

# A process that has CUDA's library in its memory may be one that the driver lists.
HOLD = "import ctypes; ctypes.CDLL({cuda!r}); {name} = bytearray(300 << 20)"


@dataclasses.dataclass
class Cards:
    """The stand-in's file; `show` rewrites it under the running server."""

    path: Path
    cuda: Path
    scenario: Scenario

    def show(self) -> None:
        self.scenario.save(self.path)

    def hold(self, name: str) -> str:
        """A cell that takes 300 MiB, in a kernel that looks as if it used CUDA."""
        return HOLD.format(cuda=str(self.cuda), name=name)


Start = Callable[[Scenario], tuple[Lab, Cards]]


@contextmanager
def labs_with_gpus(
    standin: Path, cuda_library: Path, tmp_path: Path, browser: Browser
) -> Iterator[Start]:
    """Starts a JupyterLab that finds the stand-in with a scenario; pages and server are closed afterwards."""
    with ExitStack() as stack:

        def begin(scenario: Scenario) -> tuple[Lab, Cards]:
            path = scenario.save(tmp_path / "cards")
            cards = Cards(path, cuda_library, scenario)
            variables = {name: Path(value) for name, value in environ(standin, path).items()}
            server = stack.enter_context(lab_server(tmp_path / "lab", **variables))
            return Lab(server, browser), cards

        (tmp_path / "lab").mkdir()
        yield begin
        for context in list(browser.contexts):
            context.close()


def run_beside(server: DemoServer, name: str, cell: str) -> int:
    """A second notebook whose kernel has run a cell; its process id."""
    session = server.start_session(server.write_notebook(name))
    kernel_id = session["kernel"]["id"]
    client = server.connect(kernel_id)
    client.execute_interactive(cell, timeout=120, output_hook=lambda _: None)
    client.stop_channels()
    return _pid(server, kernel_id)


def pid_behind(server: DemoServer, name: str) -> int:
    """Process id of the kernel behind a notebook that is open in the browser."""
    [session] = [s for s in server.get("api/sessions") if s["path"] == f"{name}.ipynb"]
    return _pid(server, session["kernel"]["id"])


def cuda_pid_behind(server: DemoServer, name: str) -> int:
    """The same, once the kernel has CUDA's library in its memory: a driver lists no process before."""
    pid = pid_behind(server, name)
    maps = Path(f"/proc/{pid}/maps")
    wait_until(lambda: b"libcuda" in maps.read_bytes() or None, f"CUDA's library in {name}")
    return pid


def _pid(server: DemoServer, kernel_id: str) -> int:
    pid = server.kernel_pid(kernel_id)
    assert pid is not None, f"the watcher does not know kernel {kernel_id}"
    return pid
