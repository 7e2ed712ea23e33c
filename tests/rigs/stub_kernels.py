"""A real Jupyter server with many stub kernels, and what tfguard costs in it.

Real are the server application with the extension, its kernel manager, provisioners, restarters, sessions and events. A stub
kernel is the program ``sleep``, started through a kernel specification; it speaks no protocol, so the server is not let
connect to it (so many sockets in vain), and the rig sets the execution state that the server would have been told.
Each stub has a recording, as a guarded kernel has.

tfguard's share of the processor is the time of its threads and of what it does on the event loop, each by the thread's own
clock. Its share of memory is told by two runs, with tfguard and without.

``python tests/rigs/stub_kernels.py [--kernels N] [--busy N] [--seconds S] [--without] [--json]``
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.kernelmanager import (
    AsyncMappingKernelManager,
    ServerKernelManager,
)

PATIENCE_SECONDS = 180.0


class LoopClock:
    """Processor time of what tfguard does on the event loop."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def measure(self, owner: Any, name: str) -> None:
        """Measure all calls of a method from now on."""
        method = getattr(owner, name)
        self.seconds[name] = 0.0

        def took(began: float) -> None:
            self.seconds[name] += time.thread_time() - began

        if asyncio.iscoroutinefunction(method):

            @functools.wraps(method)
            async def call(*args: Any) -> Any:
                began = time.thread_time()
                try:
                    return await method(*args)
                finally:
                    took(began)
        else:

            @functools.wraps(method)
            def call(*args: Any) -> Any:
                began = time.thread_time()
                try:
                    return method(*args)
                finally:
                    took(began)

        setattr(owner, name, call)


def thread_seconds() -> dict[str, float]:
    """Processor time of each of tfguard's threads."""
    found: dict[str, float] = {}
    for thread in threading.enumerate():
        if thread.name.startswith("tfguard") and thread.ident is not None:
            clock = time.pthread_getcpuclockid(thread.ident)
            found[thread.name] = found.get(thread.name, 0.0) + time.clock_gettime(clock)
    return found


def memory_bytes() -> int:
    """Resident memory of this process, anonymous part: what libraries map is the same with and without."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/self/status has no RssAnon.")


@contextlib.contextmanager
def private_folders() -> Iterator[Path]:
    """Folders of our own for all of Jupyter's and tfguard's files."""
    with tempfile.TemporaryDirectory(prefix="tfguard-stubs-") as name:
        folder = Path(name)
        os.environ["TFGUARD_DIR"] = str(folder / "tfguard")
        for kind in ("CONFIG", "DATA", "RUNTIME"):
            os.environ[f"JUPYTER_{kind}_DIR"] = str(folder / kind.lower())
        spec = folder / "data" / "kernels" / "stub"
        spec.mkdir(parents=True)
        program = shutil.which("sleep")
        assert program is not None
        (spec / "kernel.json").write_text(
            json.dumps({"argv": [program, "1800"], "display_name": "Stub", "language": "python"})
        )
        yield folder


class StubKernelManager(ServerKernelManager):
    """Of one stub."""

    def _connect_control_socket(self) -> None:
        """A stub listens on no port."""


class StubMappingKernelManager(AsyncMappingKernelManager):
    """Of all stubs."""

    def start_watching_activity(self, kernel_id: str) -> None:
        """A stub tells of no activity."""


def make_app(folder: Path) -> Any:
    """The server application, not yet running. It speaks to no kernel."""
    app = ServerApp(
        kernel_manager_class=StubMappingKernelManager,
        jpserver_extensions={"jupyter_tfguard": True},
        root_dir=str(folder),
        port=0,
        open_browser=False,
        allow_root=True,
        log_level="ERROR",
    )
    app.initialize(argv=[], find_extensions=False)
    app.kernel_manager.kernel_manager_class = f"{__name__}.StubKernelManager"
    return app


class Load:
    """The kernels of one server."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.ids: list[str] = []
        self.clock = LoopClock()
        self.service = app.web_app.settings.get("tfguard_service")
        self.watcher = getattr(self.service, "_watcher", None)

    async def start(self, count: int, busy: int) -> None:
        """Start the kernels, each with a session and a recording, and wait until all are watched."""
        for number in range(count):
            kernel_id = await self.app.kernel_manager.start_kernel(kernel_name="stub")
            self.ids.append(kernel_id)
            await self.app.session_manager.create_session(
                path=f"notebook-{number}.ipynb",
                name=f"notebook-{number}",
                type="notebook",
                kernel_id=kernel_id,
                kernel_name="stub",
            )
            manager = self.app.kernel_manager.get_kernel(kernel_id)
            manager.execution_state = "busy" if number < busy else "idle"
        if self.watcher is None:
            return
        await self._until(
            lambda: len(self.watcher.monitored_kernels) == count, "all kernels watched"
        )
        await asyncio.to_thread(self._record)
        await self._until(
            lambda: all(w.live.header and w.latest for w in self.watcher.monitored_kernels),
            "all recordings and first samples seen",
        )
        self.fill()

    def _record(self) -> None:
        from jupyter_tfguard.metrics import Metric, Unit
        from jupyter_tfguard.places import recordings_folder
        from jupyter_tfguard.record.identity import ProcessIdentity
        from jupyter_tfguard.record.recording import Recording

        metrics = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)
        pattern = Recording(recordings_folder(), ProcessIdentity(1, 1), {}, metrics)
        for count in range(5):
            pattern.event("cell_start", execution_count=count)
            pattern.event("cell_end", execution_count=count)
        pattern.set_progress({"what": "fit", "active": False, "epoch": 1})
        folder = recordings_folder() / ProcessIdentity(1, 1).folder_name
        # What a server reads of a running kernel. The header last, as if the others had been there before.
        names = ("events.ring", "progress.ring", "header.json")
        contents = {name: (folder / name).read_bytes() for name in names}
        for monitored in self.watcher.monitored_kernels:
            target = recordings_folder() / monitored.identity.folder_name
            target.mkdir(mode=0o700)
            for name, content in contents.items():
                with (target / name).open("wb") as file:
                    file.write(content.rstrip(b"\0"))
                    file.truncate(len(content))
        pattern.remove()

    def fill(self) -> None:
        """Give every kernel the history it has after ten minutes, through the code that keeps it."""
        from jupyter_tfguard.watch.history import CHART_SECONDS, COLUMNS, ROW_SECONDS, History

        for monitored in self.watcher.monitored_kernels:
            history = History()
            with monitored._lock:
                now = time.monotonic()
                moment = now - CHART_SECONDS
                while moment < now:
                    values = [monitored.latest.values.get(name, math.nan) for name in COLUMNS]
                    if history.add(moment, values):
                        history.add_to_chart(moment, values[0])
                    fast = monitored.is_busy and moment > now - ROW_SECONDS
                    moment += 0.1 if fast else 1.0
                monitored.history = history

    async def measure(self, seconds: float) -> dict[str, float]:
        """What tfguard takes of a core, and what is kept."""
        await asyncio.sleep(3)
        gc.collect()
        if self.watcher is None:
            await asyncio.sleep(1)
            return {"memory_bytes": memory_bytes(), "descriptors": _descriptors()}
        for owner, name in (
            (self.service._tracker, "reconcile"),
            (self.service._tracker._paths, "_read"),
            (self.service, "_read_gpus"),
        ):
            self.clock.measure(owner, name)
        threads, began, process = thread_seconds(), time.monotonic(), time.process_time()
        counts = {w.identity: w._sequence for w in self.watcher.monitored_kernels}
        await asyncio.sleep(seconds)
        took = time.monotonic() - began
        samples = sum(w._sequence - counts[w.identity] for w in self.watcher.monitored_kernels)
        parts = {
            f"{name.removeprefix('tfguard-')}_core": (spent - threads.get(name, 0.0)) / took
            for name, spent in thread_seconds().items()
        }
        loop = {f"loop_{name.strip('_')}_core": s / took for name, s in self.clock.seconds.items()}
        gc.collect()
        return {
            "core": sum(parts.values()) + sum(loop.values()),
            **parts,
            **loop,
            "process_core": (time.process_time() - process) / took,
            "samples_per_second": samples / took,
            "memory_bytes": memory_bytes(),
            "descriptors": _descriptors(),
            "pidfds": sum(w.handle.fileno() is not None for w in self.watcher.monitored_kernels),
        }

    async def end(self) -> None:
        """End tfguard, which is to report nothing of this, and then the stubs."""
        if self.watcher is not None:
            await self.service.stop()
        for kernel_id in self.ids:
            with contextlib.suppress(Exception):
                manager = self.app.kernel_manager.get_kernel(kernel_id)
                manager.stop_restarter()
                os.kill(manager.provisioner.pid, signal.SIGKILL)

    async def _until(self, condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"Waited {PATIENCE_SECONDS:.0f} s in vain: {what}.")
            await asyncio.sleep(0.1)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def run(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """One measurement."""
    app = make_app(folder)
    await asyncio.sleep(0.5)
    load = Load(app)
    try:
        await load.start(options.kernels, options.busy)
        return await load.measure(options.seconds)
    finally:
        await load.end()


async def measure_and_leave(options: argparse.Namespace, folder: Path) -> None:
    """Measure, print, and end the process: a server whose kernels do not speak takes minutes to stop."""
    found = await run(options, folder)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:28} {value:14.6g}")
    sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--busy", type=int, help="of them; 5 %% when not given")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--without", action="store_true", help="the same server without tfguard")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.busy is None:
        options.busy = max(1, options.kernels // 20)
    if options.without:
        os.environ["TFGUARD_DISABLE"] = "1"
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("ended from outside"))
    with private_folders() as folder:
        asyncio.run(measure_and_leave(options, folder))


if __name__ == "__main__":
    main()
