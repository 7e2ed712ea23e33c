"""How old the counters may be that a crash is judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.collectors.host import HostCollector
from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel

if TYPE_CHECKING:
    from tests.watch.conftest import Start

pytestmark = pytest.mark.quick
SLEEP = "print(flush=True); import time; time.sleep(60)"


def test_counters_from_before_a_kernel_are_not_its_own(start: Start) -> None:
    """A kernel that is started anew in the group of the killed one: that kill is none of its own."""
    groups = SharedGroups()
    try:
        first = MonitoredKernel(start(SLEEP).pid, Kernel("first"), groups)
    except SourceUnavailable as bad:
        pytest.skip(str(bad))
    if first.group.path is None:
        pytest.skip("no memory group is visible here")
    host = HostCollector().collect()
    first.group.poll(host)
    second = MonitoredKernel(start(SLEEP).pid, Kernel("second"), groups)
    assert second.group is first.group
    for tick in range(3):
        assert second.sample(tick, host)
    assert second.before is None
    second.group.poll(host)
    for tick in range(3, 6):
        assert second.sample(tick, host)
    assert second.before is second.group.counters
    first.close()
    second.close()
