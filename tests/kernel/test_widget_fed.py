"""Which views of ``%tfguard panel`` are fed: all until they are closed, which the kernel hears when no cell runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel
from tests.kernel.widget_rig import messages, news, opened, tell, until_idle

pytestmark = pytest.mark.usefixtures("reloaded")


def test_nothing_is_sent_when_its_views_are_closed(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    comm_id = opened(panel("pass"))["comm_id"]
    tell(kernel, comm_id, {"type": "opened", "view": "a"})
    found = messages(kernel, 2.0)
    assert news(found, "history")[0]["rows"]
    tell(kernel, comm_id, {"type": "closed", "view": "a"})
    assert news(until_idle(kernel, kernel.send("import time; time.sleep(1.5)"))) == []
    tell(kernel, comm_id, {"type": "opened", "view": "b"})
    assert news(until_idle(kernel, kernel.send("time.sleep(1.5)")))


def test_a_panel_that_is_opened_again_after_another_was_made_is_fed(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    first = opened(panel("pass"))["comm_id"]
    tell(kernel, first, {"type": "opened", "view": "a"})
    tell(kernel, first, {"type": "closed", "view": "a"})
    until_idle(kernel, kernel.send("%tfguard panel"))
    tell(kernel, first, {"type": "opened", "view": "b"})
    found = until_idle(kernel, kernel.send("import time; time.sleep(1.5)"))
    comms = [m["content"]["comm_id"] for m in found if m["msg_type"] == "comm_msg"]
    assert comms.count(first) >= 3


def test_several_panels_have_one_thread_and_unloading_ends_it(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    panel("pass")
    panel("pass")
    names = (
        "import threading; print([t.name for t in threading.enumerate()].count('tfguard-widget'))"
    )
    assert kernel.run(names).stdout == "1\n"
    found = until_idle(kernel, kernel.send("%unload_ext tfguard"))
    assert len(news(found, "ended")) == 2
    assert kernel.run(names).stdout == "0\n"
