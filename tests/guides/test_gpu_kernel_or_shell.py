"""Guide 2: crashing the GPU kernel or the shell."""

from __future__ import annotations

import re

from jupyter_tfguard.units import GIB
from tests.guides.conftest import printed_mib, run_named


def test_copies_and_leaks_end_the_kernel_and_the_fixes_stay_below_the_limit() -> None:
    run = run_named("2-crashing-gpu-kernel-or-shell")
    limit_bytes = 3 * GIB // 4
    slices = run.deaths["slices"]
    assert slices["cause"] == "cgroup_oom"
    assert slices["memory"]["limit_bytes"] == limit_bytes
    assert slices["arrays"][0]["name"] == "images"
    assert "batches" not in run.text("slices")
    assert "273 MiB" in run.text("write-file")
    assert "72/72" in run.text("fix-data")
    rows = run.text("fix-data-memory").splitlines()
    assert 0 < printed_mib(next(line for line in rows if "model = small_model()" in line)) < 273

    leak = run.deaths["leak"]
    assert leak["cause"] == "cgroup_oom"
    assert leak["memory"]["limit_bytes"] == limit_bytes
    grown = [float(size) for size in re.findall(r"epoch \d+: (\d+) MiB", run.text("leak"))]
    assert 5 <= len(grown) < 20
    assert grown[-1] - grown[0] > 40  # MiB; a single epoch may give some back
    others = [finding["cause"] for finding in leak["other_findings"]]
    assert "host_leak" in others, others
    found = re.search(r"epoch 5: (\d+) MiB, epoch 20: (\d+) MiB", run.text("fix-leak"))
    assert found
    per_epoch = (grown[-1] - grown[0]) / (len(grown) - 1)
    assert int(found[2]) - int(found[1]) < 15 * per_epoch / 4

    shell = run.deaths["shell"]
    assert shell["cause"] == "child_oom_killed"
    assert "exit status 137" in run.text("shell")
    assert "child_oom_killed" in run.text("why-shell")
    assert "cgroup_oom" in run.text("explain-shell")
    assert "exit status 0" in run.text("fix-shell")
    assert "gpu_device_name: ''" in run.text("versions") or "GPU" in run.text("versions")
    assert "cuda_illegal_access" in run.text("gpu-fault")
