"""A kernel under ``ulimit -v``: panel and status bar set its address space against the limit, and not its resident memory."""

from __future__ import annotations

import re
import resource
from typing import TYPE_CHECKING

from tests.browser.conftest import command, picture, theme
from tests.browser.gpus import pid_behind

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

LIMIT_BYTES = 4 << 30
RESERVE = """\
import mmap
def reserve(mib):
    return mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
"""
HOLD = "held = reserve({mib} - sum(int(line.split()[1]) >> 10 for line in open('/proc/self/status') if line.startswith('VmSize')))"


def test_address_space_is_set_against_its_limit(lab: Lab) -> None:
    page = lab.open(
        lab.notebook(
            "batch", RESERVE, HOLD.format(mib=3300), f"first = held; {HOLD.format(mib=3900)}"
        )
    )
    pid = pid_behind(lab.server, "batch")
    resource.prlimit(pid, resource.RLIMIT_AS, (LIMIT_BYTES, resource.RLIM_INFINITY))
    command(page, "notebook:run-cell-and-select-next")
    command(page, "notebook:run-cell-and-select-next")
    command(page, "tfguard:open-panel")
    page.wait_for_function(
        "document.querySelector('.jp-TfGuard-StatusItem').innerText.includes('3.2 of 4.0 GiB')",
        timeout=120_000,
    )
    memory = page.locator(".jp-TfGuard-Panel .jp-TfGuard-HostMemory")
    # The panel's words are drawn less often than the number of the status bar.
    memory.get_by_text("3.2 of 4.0 GiB · address space limit (ulimit -v)").wait_for(timeout=120_000)
    text = memory.inner_text()
    assert re.search(r"^\d+ MiB$", text, re.MULTILINE), text  # resident, by itself
    page.wait_for_timeout(4000)
    picture(page, "panel-ulimit-light")
    command(page, "notebook:run-cell-and-select-next")
    notice = page.locator(".jp-TfGuard-Panel .jp-TfGuard-LimitNotice")
    notice.wait_for(timeout=120_000)
    assert "no more memory is given" in notice.inner_text()
    assert "killed" not in notice.inner_text()
    page.wait_for_timeout(1000)
    picture(page, "panel-ulimit-near-light")
    theme(page, dark=True)
    page.wait_for_timeout(2000)
    picture(page, "panel-ulimit-near-dark")
