"""All metrics at one moment, whatever single sources do."""

from __future__ import annotations

import os

import pytest

from jupyter_tfguard.collectors.cgroup import CgroupCollector
from jupyter_tfguard.collectors.host import HostCollector
from jupyter_tfguard.collectors.process import ProcessCollector
from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.sampler import Sampler

pytestmark = pytest.mark.quick


class Broken:
    metrics = (Metric("broken.bytes", "Never there", Unit.BYTES, "nothing"),)

    def __init__(self) -> None:
        self.closed = False

    def collect(self) -> dict[str, float]:
        raise SourceUnavailable("not here")

    def close(self) -> None:
        self.closed = True


def test_samples_are_numbered_from_one() -> None:
    sampler = Sampler([HostCollector()])
    assert [sampler.tick().sequence for _ in range(3)] == [1, 2, 3]
    sampler.close()


def test_a_failing_source_leaves_only_its_own_metrics_unknown() -> None:
    broken = Broken()
    sampler = Sampler([broken, ProcessCollector(os.getpid())])
    sample = sampler.tick()
    assert sample.get("broken.bytes") is None
    assert (sample.get("process.rss_bytes") or 0) > 1_000_000
    assert sampler.unavailable == {"Broken": "not here"}
    sampler.close()
    assert broken.closed


def test_no_metric_has_two_collectors() -> None:
    names = [m.name for c in (ProcessCollector, HostCollector, CgroupCollector) for m in c.metrics]
    assert len(names) == len(set(names))
