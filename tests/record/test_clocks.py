"""A wall clock that is set back and forth while a kernel runs: order and lengths come from sequence and monotonic time."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.diagnosis import activity
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.postmortem.capture import capture, capture_orphan
from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

METRICS = (Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),)
DAY = 86400.0
# How far the clock is off from one second to the next: an hour back, ten years forth, before 1980, and right again.
JUMPS = (0.0, -3600.0, 0.0, 10 * 365 * DAY, -50 * 365 * DAY, 0.0, -DAY, DAY)


def recorded(root: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """A minute of a kernel's life under such a clock."""
    recording = Recording(root, ProcessIdentity(7, 7), {"kernel_id": "k"}, METRICS)
    real = time.time()
    sequence = itertools.count(1)
    with monkeypatch.context() as patch:
        for second in range(60):
            wall = real - 60 + second + JUMPS[second % len(JUMPS)]
            patch.setattr(time, "time", lambda wall=wall: wall)
            for tenth in range(10):
                number = next(sequence)
                monotonic = 1000 + second + tenth / 10
                values = {"process.rss_bytes": 1e6 * number}
                recording.sample(Sample(number, monotonic, wall + tenth / 10, values))
            recording.event("cell_start", execution_count=second + 1, head=f"x = {second}")
            recording.event("cell_end", execution_count=second + 1)
        recording.event("cell_start", execution_count=61, head="last()")
    return recording


@pytest.mark.quick
def test_a_recording_keeps_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(tmp_path / "recordings", monkeypatch)
    recording.close()
    contents = read_recording(recording.folder.path)
    assert [sample.sequence for sample in contents.samples] == list(range(1, 601))
    assert [s.values["process.rss_bytes"] for s in contents.samples] == [
        1e6 * n for n in range(1, 601)
    ]
    counts = [event["execution_count"] for event in contents.events]
    assert counts == sorted(counts)
    # Seconds are those of the monotonic clock: 59 whole ones, each of ten samples in a row.
    assert len(contents.seconds) == 59
    for index, summary in enumerate(contents.seconds):
        assert summary.minimum["process.rss_bytes"] == pytest.approx(
            1e6 * (10 * index + 1), rel=1e-6
        )
        assert summary.maximum["process.rss_bytes"] == pytest.approx(
            1e6 * (10 * index + 10), rel=1e-6
        )


@pytest.mark.quick
def test_bundle_and_report_keep_the_order(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(data_folder / "recordings", monkeypatch)
    recording.close()
    (orphan,) = list(each_orphan(data_folder / "recordings"))
    bundle = capture_orphan(orphan)
    table = bundle["kernel"]["samples"]
    column = table["columns"].index("process.rss_bytes")
    values = [row[column] for row in table["rows"]]
    assert values == sorted(values)
    seen = Evidence(bundle)
    cell = activity.last_cell(seen)
    assert cell is not None
    assert (cell.execution_count, cell.running) == (61, True)
    assert seen.peak() == 600_000_000
    entry = Postmortem(
        data_folder / "recordings", BundleStore(data_folder / "bundles"), TfGuard()
    ).report(bundle)
    assert entry["cause"] == "unknown"
    # Nothing of another century: the death is no later than now, and no earlier than what was read last.
    assert abs(seen.died - time.time()) < 2 * DAY


@pytest.mark.quick
def test_a_clock_that_was_set_back_hides_no_death(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording lies in the future of whoever looks for it."""
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 4e9)
        recording = Recording(data_folder / "recordings", ProcessIdentity(7, 7), {}, METRICS)
        recording.event("cell_start", execution_count=1, head="x")
        recording.close()
    (orphan,) = list(each_orphan(data_folder / "recordings"))
    bundle = capture(identity=orphan.identity, recording=orphan.contents)
    assert float(bundle["identity"]["died"]) <= time.time()
