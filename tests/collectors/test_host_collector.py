"""The machine's memory, here and as other machines print it."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from jupyter_tfguard.collectors.host import HostCollector

pytestmark = pytest.mark.quick

FIXTURES = Path(__file__).parents[1] / "fixtures"


def collect(root: str = "") -> dict[str, float]:
    collector = HostCollector(root=root)
    try:
        return collector.collect()
    finally:
        collector.close()


def test_numbers_of_a_machine_under_pressure() -> None:
    assert collect(str(FIXTURES / "desktop-systemd-v2")) == {
        "host.available_bytes": 9000000 * 1024,
        "host.total_bytes": 16215404 * 1024,
        "host.swap_total_bytes": 8388604 * 1024,
        "host.swap_used_bytes": 388604 * 1024,
        "host.oom_kill_count": 1,
        "host.pressure_some_fraction": pytest.approx(0.1234),
    }


def test_a_machine_without_pressure_files_leaves_it_unknown() -> None:
    assert "host.pressure_some_fraction" not in collect(str(FIXTURES / "container-v2-namespace"))


def test_this_machine_agrees_with_psutil() -> None:
    values = collect()
    assert values["host.total_bytes"] == psutil.virtual_memory().total
    assert abs(values["host.available_bytes"] - psutil.virtual_memory().available) < 512 << 20


def test_without_procfs_psutil_answers(tmp_path: Path) -> None:
    values = collect(str(tmp_path))
    assert values["host.total_bytes"] == psutil.virtual_memory().total
    assert "host.oom_kill_count" not in values


def test_every_number_is_a_declared_metric() -> None:
    assert set(collect()) <= {metric.name for metric in HostCollector.metrics}
