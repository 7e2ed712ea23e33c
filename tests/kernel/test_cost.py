"""Ceilings, twenty times as high as what the guard may cost; the figures themselves are the benchmarks' business."""

from __future__ import annotations

import time
from pathlib import Path

from tests.benchmarks.kernel_start import REST, TIMED
from tests.kernel.rig import GuardedKernel, guarded_kernel

START_CEILING_SECONDS = 20 * 0.030
REST_CEILING_FRACTION = 20 * 0.002


def test_the_guard_starts_quickly(tmp_path: Path) -> None:
    with guarded_kernel(tmp_path, before=TIMED) as kernel:
        took = float(kernel.run("import os; print(os.environ['STARTED'])").stdout)
        assert len(kernel.recording_paths()) == 1
    assert 0.0 < took < START_CEILING_SECONDS


def test_the_guard_rests_when_the_kernel_does(kernel: GuardedKernel) -> None:
    assert kernel.run(REST + "before = cpu_seconds(); print(before > 0)").stdout == "True\n"
    time.sleep(2.0)
    used = float(kernel.run("print(cpu_seconds() - before)").stdout)
    assert used < 2.0 * REST_CEILING_FRACTION
