"""Crashes by the thousand, through the real watcher, reporter and store: has each its event, and is disk use bounded?

``storm``: many kernels, all killed within a second. ``loop``: one kernel that dies again and again, with a restart of the
watching server in the middle. A kernel is the program ``sleep``, with a recording that holds little more than a header; what
a Jupyter server does (starting, restarting, a loop that waits for pidfds) is done here in a few lines.

``python tests/rigs/crash_storm.py [--kernels N] [--deaths N] [--json]``
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.identity import ProcessIdentity, boot_id
from jupyter_tfguard.record.recording import FORMAT, HEADER
from jupyter_tfguard.watch.process_witness import ProcessWitness
from jupyter_tfguard.watch.watcher import Watcher
from jupyter_tfguard.watch.witness import Kernel

PATIENCE_SECONDS = 60.0


class Host:
    """What a Jupyter server is to the watcher: it starts processes, and says when one has ended."""

    def __init__(self, folder: Path, settings: TfGuard) -> None:
        self.recordings = folder / "recordings"
        self.store = BundleStore(folder / "bundles")
        self.events: list[dict[str, Any]] = []
        self._last_event = 0.0
        postmortem = Postmortem(self.recordings, self.store, settings, on_report=self._take)
        self._watcher = Watcher(self.recordings, postmortem.handle, lambda witness: None)
        self._selector = selectors.DefaultSelector()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._stopping = False
        self._loop = threading.Thread(target=self._wait_for_ends)
        self._loop.start()

    def _take(self, entry: dict[str, Any]) -> None:
        self.events.append(entry)
        self._last_event = time.monotonic()

    def start_kernel(self, kernel_id: str) -> int:
        """A new process of this kernel, with a recording, watched. Its process id."""
        process = subprocess.Popen(["sleep", "100000"], stdin=subprocess.DEVNULL)
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        header = {
            "format": list(FORMAT),
            "kernel_id": kernel_id,
            "boot_id": boot_id(),
            "watcher_pid": os.getpid(),
        }
        with PrivateFolder(self.recordings / identity.folder_name) as recording:
            recording.write_whole(HEADER, json.dumps(header).encode())
        kernel = Kernel(kernel_id, kernel_name="stub", notebook_path=f"{kernel_id}.ipynb")
        witness = self._watcher.watch(process.pid, kernel)
        self._processes[process.pid] = process
        descriptor = witness.handle.fileno()
        assert descriptor is not None, "this rig needs a pidfd for every kernel: raise `ulimit -n`"
        self._selector.register(descriptor, selectors.EVENT_READ, witness)
        return process.pid

    def _wait_for_ends(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(0.05):
                self._selector.unregister(key.fd)
                witness: ProcessWitness = key.data
                self._watcher.ended(witness)
                self._processes.pop(witness.identity.pid).wait()

    def wait_for_events(self, count: int) -> float:
        """Wait for so many events; when the last one came, in monotonic seconds."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while len(self.events) < count:
            if time.monotonic() > ends:
                raise SystemExit(f"Only {len(self.events)} of {count} deaths had their event.")
            time.sleep(0.005)
        return self._last_event

    def stop(self) -> None:
        self._stopping = True
        self._loop.join()
        self._watcher.stop()
        self._selector.close()
        for process in self._processes.values():
            process.kill()
            process.wait()


def storm(folder: Path, kernels: int) -> dict[str, Any]:
    """Kill that many kernels at once."""
    settings = TfGuard()
    host = Host(folder, settings)
    try:
        pids = [host.start_kernel(f"kernel-{number}") for number in range(kernels)]
        time.sleep(1.5)  # each has been looked at
        began, processor = time.monotonic(), time.process_time()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        last = host.wait_for_events(kernels)
        processor = time.process_time() - processor
        found = _found(host)
    finally:
        host.stop()
    return found | {
        "deaths": kernels,
        "killed_within_seconds": round(killed - began, 3),
        "seconds": round(last - began, 3),
        "processor_seconds": round(processor, 3),
    }


def loop(folder: Path, deaths: int) -> dict[str, Any]:
    """Let one kernel die that often, half of it under one server and half under the next."""
    began = time.monotonic()
    events = 0
    found: dict[str, Any] = {}
    for part in (deaths // 2, deaths - deaths // 2):
        host = Host(folder, TfGuard())
        try:
            for number in range(part):
                os.kill(host.start_kernel("loops"), signal.SIGKILL)
                host.wait_for_events(number + 1)
            found = _found(host)
        finally:
            host.stop()
        events += found["events"]
    return found | {
        "deaths": deaths,
        "events": events,
        "seconds": round(time.monotonic() - began, 3),
    }


def _found(host: Host) -> dict[str, Any]:
    entries = host.store.entries()
    return {
        "events": len(host.events),
        "event_kernels": len({entry["kernel_id"] for entry in host.events}),
        "bundles": len(entries),
        "entries": len([entry for entry in entries if entry["same_as"] is None]),
        "causes": sorted({entry["cause"] for entry in entries}),
        "recordings_left": len(os.listdir(host.recordings)),
        "kept_bytes": sum(p.stat().st_size for p in host.store.root.rglob("*") if p.is_file()),
    }


@contextmanager
def private_folder() -> Iterator[Path]:
    """A data folder of our own."""
    folder = Path(tempfile.mkdtemp(prefix="tfguard-storm-"))
    os.environ["TFGUARD_DIR"] = str(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run both, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=1000, help="of the storm")
    parser.add_argument("--deaths", type=int, default=1000, help="of the loop")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    for name, run, count in (("storm", storm, options.kernels), ("loop", loop, options.deaths)):
        if count:
            with private_folder() as folder:
                results[name] = run(folder, count)
    if options.json:
        print(json.dumps(results))
        return
    for name, found in results.items():
        print(name)
        for what, value in found.items():
            print(f"  {what:24} {value}")


if __name__ == "__main__":
    main()
