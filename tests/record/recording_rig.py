"""A recording that a test writes and reads back. Not a test."""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_tfguard import shield
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

METRICS = tuple(
    Metric(f"process.number_{n}_bytes", f"Number {n}", Unit.BYTES, "test") for n in range(18)
)
RINGS = ("samples.ring", "seconds.ring", "minutes.ring", "events.ring", "progress.ring")


def make(tmp_path: Path) -> Recording:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    return Recording(tmp_path / "recordings", identity, {"kernel_id": "k"}, METRICS)


def sample(number: int, hertz: float = 10.0, wall: float | None = None) -> Sample:
    moment = 1000.0 + number / hertz
    values = {metric.name: float(number * (n + 1)) for n, metric in enumerate(METRICS[:-1])}
    return Sample(number, moment, 1e9 + moment if wall is None else wall, values)


def contents(recording: Recording) -> RecordingContents:
    return read_recording(recording.folder.path)


def problems() -> list[str]:
    return [entry["place"] for entry in shield.read_problems()]
