"""Guide 1: model.fit crashes the kernel."""

from __future__ import annotations

import re

from jupyter_tfguard.units import GIB
from tests.guides.conftest import printed_mib, run_named


def test_the_batch_is_named_and_the_smaller_one_fits() -> None:
    run = run_named("1-model-fit-crashes-the-kernel")
    crash = run.deaths["too-large"]
    assert crash["cause"] == "cgroup_oom"
    assert crash["memory"]["limit_bytes"] == 2 * GIB
    assert "Epoch 1/2" in run.text("too-large")
    assert "never printed" not in run.text("too-large")
    # The fix uses the advised batch size, or a smaller one where this machine was slower to fill its memory.
    advised = next(
        int(found[1])
        for advice in crash["advice"]
        if (found := re.search(r"batch_size=(\d+)", advice["code"] or ""))
    )
    assert 64 <= advised < 256
    assert "batch_size=64" in run.source("fix")
    assert "Epoch 2/2" in run.text("fix")
    assert re.search(r"8/8 - .*loss", run.text("fix"))
    peaks = [printed_mib(line) for line in run.text("fix-memory").splitlines() if "fit(" in line]
    assert peaks
    assert 0 < peaks[0] < 1200

    assert "gpu_oom" in run.text("gpu-memory")
    assert "cudnn_version_mismatch" in run.text("cudnn")
    assert "cuda_driver_mismatch" in run.text("driver")
    assert "no_crash" in run.text("harmless")

    environment = run.deaths["environment"]
    assert environment["cause"] == "tf_check_failed"
    assert any("Unknown flag" in line for line in environment["stderr_tail"])
    assert "Unknown flag" in run.text("why-environment")
    assert "2." in run.text("fix-environment")
    assert "XLA_FLAGS = None" in run.text("fix-environment")
    assert "memory limit" in run.text("doctor")
