"""Writes the golden recording of this version: ``python -m tests.record.golden.write FOLDER``, once for each format released.

A real recording, made by the writer itself, of an invented kernel at invented times; the rings are short, so that they
go round.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record import record_writer
from jupyter_tfguard.record import recording as module
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

BEGAN = 1_790_000_000.0
METRICS = (
    Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),
    Metric("host.available_bytes", "Available", Unit.BYTES, "meminfo"),
    Metric("host.pressure_some_fraction", "Pressure", Unit.FRACTION, "pressure"),
)
CAPACITIES = {
    "SAMPLES_CAPACITY": 16,
    "SECONDS_CAPACITY": 12,
    "MINUTES_CAPACITY": 4,
    "EVENTS_CAPACITY": 8,
    "GROW_BYTES": 256,
}
HEADER = {
    "host": "example",
    "pid_namespace": "pid:[4026531836]",
    "boot_id": "00000000-0000-4000-8000-000000000002",
    "kernel_id": "11111111-2222-4333-8444-555555555555",
    "kernel_name": "python3",
    "notebook_path": "examples/golden.ipynb",
    "parent_pid": 4710,
    "versions": {"python": "3.11.2", "tensorflow": "2.21.0"},
    "started": BEGAN,
}


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.set(0.0)

    def set(self, moment: float, wall_jump: float = 0.0) -> None:
        self._moment, self._wall = 500.0 + moment, BEGAN + moment + wall_jump

    def time(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._moment


def write(root: Path) -> Path:
    """Write the recording below `root`; its folder comes back."""
    clock = Clock()
    with (
        mock.patch.multiple(module, **CAPACITIES),
        mock.patch.object(module.time, "time", clock.time),
        mock.patch.object(record_writer.time, "monotonic", clock.monotonic),
    ):
        recording = Recording(root, ProcessIdentity(4711, 1234567), HEADER, METRICS)
        _fill(recording, clock)
        recording.close()
    return recording.folder.path


def _fill(recording: Recording, clock: Clock) -> None:
    recording.event("import", module="tensorflow", version="2.21.0")
    for number in range(1, 31):
        # Slowly at first, from the twentieth on eight a second; the wall clock is set back by an hour at the tenth.
        moment = 10.0 * min(number, 20) + 0.125 * max(0, number - 20)
        clock.set(moment, wall_jump=-3600.0 if number >= 10 else 0.0)
        values = {"process.rss_bytes": 1048576.0 * number, "host.available_bytes": 2.0**33}
        if number % 3:
            values["host.pressure_some_fraction"] = 0.25
        recording.sample(Sample(number, clock.monotonic(), clock.time(), values))
        if number % 5 == 0:
            head = "x = 1  # padding\n" * number * 3
            recording.event("cell_start", execution_count=number // 5, head=head)
    recording.event("fit_start", fit_id=1, what="fit", model_name="séquentiel 🙂")
    for step in range(1, 4):
        recording.set_progress({"fit_id": 1, "what": "fit", "active": True, "step": step})
    for name, text in {
        "stderr.0.txt": "2026-09-21 15:33:20 F an invented last word\n",
        "fault.txt": "Fatal Python error: Aborted\n",
        "signal-SIGTERM.txt": "Current thread 0x0000000000000001 (most recent call first):\n",
    }.items():
        recording.folder.write_whole(name, text.encode())
    recording.end("shutdown_request")


def as_json(found: RecordingContents) -> dict[str, Any]:
    """What a reader finds, for ``expected.json``."""
    return {
        "header": {name: found.header[name] for name in ("format", *HEADER)},
        "events": found.events,
        "samples": [[s.sequence, s.monotonic, s.time, dict(s.values)] for s in found.samples],
        **{
            name: [
                [s.sequence, s.monotonic, s.time, s.minimum, s.maximum, s.last]
                for s in getattr(found, name)
            ]
            for name in ("seconds", "minutes")
        },
        "progress": found.progress,
        "stderr_tail": found.stderr_tail,
        "fault_text": found.fault_text,
        "signal_texts": found.signal_texts,
        "end": found.end,
        "problems": found.problems,
    }


def main(folder: Path) -> None:
    """Fill `folder` with the recording and what is to be found in it."""
    with tempfile.TemporaryDirectory() as root:
        written = write(Path(root) / "recordings")
        (folder / "recording").mkdir(parents=True)
        for file in written.iterdir():
            if not file.name.startswith(".") and file.stat().st_size:
                (folder / "recording" / file.name).write_bytes(file.read_bytes())
        expected = json.dumps(as_json(read_recording(written)), indent=1, ensure_ascii=False)
    (folder / "expected.json").write_text(expected + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
