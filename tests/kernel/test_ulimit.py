"""A kernel under ``ulimit -v`` tells of the limit that binds it, and writes it into its recording."""

from __future__ import annotations

import resource
from collections.abc import Callable

from jupyter_tfguard.memory.limits import Limit, LimitKind
from tests.kernel.rig import GuardedKernel
from tests.rigs.waiting import wait_until

LIMIT_BYTES = 6 << 30
NAME = Limit(LIMIT_BYTES, LimitKind.ADDRESS_SPACE).name
RESERVE = "import mmap; held = mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"
PANEL = """\
from jupyter_tfguard.kernel.current import current
from jupyter_tfguard.kernel.panel.panel_state import PanelState
print(PanelState(current()).now()["host"]["limit"]["name"])
"""
SET = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({LIMIT_BYTES}, resource.RLIM_INFINITY))"


def test_a_kernel_started_under_a_limit(new_kernel: Callable[..., GuardedKernel]) -> None:
    kernel = new_kernel(before=SET)
    assert resource.prlimit(kernel.pid, resource.RLIMIT_AS)[0] == LIMIT_BYTES
    kernel.run(RESERVE)
    wait_until(lambda: "address space" in kernel.run("%tfguard status").stdout or None, "the limit")
    status = kernel.run("%tfguard status").stdout.splitlines()[1]
    assert f" GiB of 6.00 GiB, {NAME}, " in status
    assert kernel.run(PANEL).stdout == f"{NAME}\n"

    def recorded() -> bool | None:
        newest = kernel.recording().samples[-1].values
        return (
            newest["process.address_space_limit_bytes"] == LIMIT_BYTES
            and 4 << 30 < newest["process.address_space_bytes"] < LIMIT_BYTES
            and "process.data_limit_bytes" not in newest
        ) or None

    wait_until(recorded, "the limit in the recording")
    assert kernel.problems() == ""
    assert kernel.run("bytearray(2 << 30)").error is not None  # it does bind
