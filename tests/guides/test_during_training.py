"""Guide 3: the kernel crashes during training."""

from __future__ import annotations

import re

from jupyter_tfguard.units import GIB
from tests.guides.conftest import run_named


def test_cures_free_nothing_a_forked_worker_hangs_and_a_wild_pointer_is_named() -> None:
    run = run_named("3-crashing-during-training")
    warm_up, plain, collected, cleared = [
        int(size) for size in re.findall(r"steps: ([+-]\d+) MiB", run.text("cures"))
    ]
    assert warm_up < 200
    # 20 steps keep 80 MiB of gradients.
    for grown in (plain, collected, cleared):
        assert grown > 60

    leak = run.deaths["leak"]
    assert leak["cause"] == "cgroup_oom"
    assert leak["memory"]["limit_bytes"] == GIB
    fixed = [int(size) for size in re.findall(r"steps: ([+-]\d+) MiB", run.text("fix-leak"))]
    assert fixed[-1] < plain  # 600 steps, not 20
    assert "600 norms kept" in run.text("fix-leak")

    here, *_ = re.findall(r"here: (\S+)", run.text("fork"))
    assert "TimeoutError" in run.text("fork")
    assert f"spawned child: [{here}]" in run.text("fix-fork")

    assert "IndexError" in run.text("index-error")
    assert len(re.findall(r": [\d.]+ ms", run.text("checks"))) == 3

    strided = run.deaths["strided"]
    assert strided["cause"] == "segfault_native"
    assert any("sums_of_windows" in line for line in strided["python_stack"])
    assert "(993,)" in run.text("fix-strided")
    assert "hardware_error" in run.text("hardware")
