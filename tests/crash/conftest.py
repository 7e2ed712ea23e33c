"""A real Jupyter server, and kernels in it that really die."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jupyter_client.blocking import BlockingKernelClient

if TYPE_CHECKING:
    from tests.crash.scene import Theatre

from jupyter_tfguard.demo.limits import LimitedGroup, NoLimitPossible, SystemdScope, make_limit
from jupyter_tfguard.demo.server import DemoServer
from jupyter_tfguard.record.alive import recording_name
from jupyter_tfguard.record.contents import read_recording
from tests.conftest import private_jupyter, write_options
from tests.rigs.waiting import wait_until


class RecordingServer(DemoServer):
    """A real server whose data folder the tests know."""

    def __init__(self, work: Path, data: Path) -> None:
        self.data = data
        super().__init__(work, lab=False)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:  # closed meanwhile
        return ""


class Kernel:
    """One kernel of the server, with its client; one that never `answers` has none."""

    def __init__(
        self,
        server: RecordingServer,
        name: str,
        kernel_name: str = "python3",
        *,
        answers: bool = True,
    ) -> None:
        self.server = server
        self.session = server.start_session(server.write_notebook(name), kernel_name)
        self.id = str(self.session["kernel"]["id"])
        self.client = server.connect(self.id) if answers else BlockingKernelClient()

    @property
    def pid(self) -> int:
        return wait_until(lambda: self.server.kernel_pid(self.id) or 0, "a watched kernel")

    def state(self) -> dict[str, Any]:
        """The kernel's state on the panel's route; empty while the watcher does not know the kernel."""
        kernels = self.server.get("tfguard/api/status")["kernels"]
        return next((one for one in kernels if one["kernel_id"] == self.id), {})

    def run(
        self, code: str, timeout: float = 60, ask: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Run a cell and wait for its reply; `ask` are expressions whose values come with it."""
        message = self.client.execute(code, user_expressions=ask)
        ends = time.monotonic() + timeout
        while True:
            reply = self.client.get_shell_msg(timeout=max(0.1, ends - time.monotonic()))
            if reply["parent_header"].get("msg_id") == message:
                content: dict[str, Any] = reply["content"]
                return content

    def start(self, code: str) -> None:
        """Run a cell that does not come back."""
        self.client.execute(code)

    def sleep(self) -> None:
        """Run a cell that does not come back, and return when its code runs."""
        begun = self.server.work / f"begun-{self.pid}"
        self.start(f"import time; open('{begun.name}', 'w').close(); time.sleep(100)")
        wait_until(begun.exists, "the cell")

    def wait_until_watched(self) -> None:
        """Return when the watcher has read the kernel's recording: from then on it keeps the last native words."""

        def is_watched() -> bool:
            state = self.state()
            return bool(state) and bool(state["guard"]["loaded"])

        def pipe_is_held() -> bool:
            (recording,) = (self.server.data / "recordings").glob(f"{self.pid}-*")
            pipe = read_recording(recording).header["guard"]["stderr_pipe"]
            found = Path(f"/proc/{self.server.process.pid}/fd").iterdir()
            return pipe is None or f"pipe:[{pipe['inode']}]" in map(_link, found)

        wait_until(is_watched, "a watched kernel")
        wait_until(pipe_is_held, "the watcher to hold the kernel's stderr")

    def wait_until_forgotten(self, pid: int) -> None:
        """Return when the recording of this process is removed, also where somebody had claimed it before."""
        root = self.server.data / "recordings"

        def is_gone() -> bool:
            return all(not recording_name(path).startswith(f"{pid}-") for path in root.iterdir())

        wait_until(is_gone, "the recording to go")

    def children_bytes(self) -> int:
        """Memory of its child processes, as the watcher has measured it; 0 if it has seen none."""
        return int(self.state()["host"]["children_rss_bytes"] or 0)

    def report(self) -> dict[str, Any]:
        """The report of its death."""
        try:
            return wait_until(lambda: self.server.report_of(self.id) or {}, "the report")
        except AssertionError as none:
            raise AssertionError(f"{none}; the server says:\n{self.server.log_tail()}") from none

    def entries(self) -> list[dict[str, Any]]:
        """Everything in the list about this kernel."""
        entries = self.server.get("tfguard/api/crashes")["crashes"]
        return [entry for entry in entries if entry["kernel_id"] == self.id]

    def reconnect(self) -> None:
        """A new client, for the process that came after a restart."""
        self.client.stop_channels()
        self.client = self.server.connect(self.id)

    def close(self) -> None:
        self.client.stop_channels()
        self.server.end_session(self.session)


@pytest.fixture(scope="module")
def theatre(server: RecordingServer, request: pytest.FixtureRequest) -> Iterator[Theatre]:
    """Plays the scenes that the selected tests of this file ask for, side by side; all of them where none is named."""
    from tests.crash.scene import Scene, Theatre
    from tests.crash.settings import write_settings

    write_settings(Path(os.environ["JUPYTER_DATA_DIR"]) / "kernels")
    here = [item for item in request.session.items if item.path == request.path]
    params = [item.callspec.params for item in here if hasattr(item, "callspec")]
    found = Theatre(server, [p["scene"] for p in params if isinstance(p.get("scene"), Scene)])
    yield found
    found.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingServer]:
    """One server for all deaths, with a data folder of its own. Its kernels may fill their memory."""
    home = tmp_path_factory.mktemp("home")
    write_options(home / "config", "off")
    with private_jupyter(home):
        found = RecordingServer(tmp_path_factory.mktemp("work"), home / "tfguard")
        yield found
        found.stop()


@pytest.fixture
def kernel(server: RecordingServer, request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """A fresh kernel."""
    made = Kernel(server, "".join(c if c.isalnum() else "-" for c in request.node.name)[:60])
    made.wait_until_watched()
    yield made
    made.close()


def cannot_be_played(reason: str) -> None:
    """Skip for want of rights on this machine; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def no_cgroup(reason: str) -> None:
    """Skip for want of rights to make a memory limit; in CI that is a failure."""
    cannot_be_played(f"no memory limit can be set here: {reason}")


@contextlib.contextmanager
def needed_limit(limit_bytes: int) -> Iterator[LimitedGroup | SystemdScope]:
    """A memory limit without which the test cannot be played."""
    try:
        limit = make_limit(limit_bytes)
    except NoLimitPossible as no:
        no_cgroup(str(no))
        raise
    try:
        yield limit
    finally:
        limit.remove()
