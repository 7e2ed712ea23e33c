"""Which views of ``%tfguard panel`` are fed, and until when: those that are open, of a page that is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel
from tests.kernel.widget_rig import ask, messages, news, opened, panel_data, tell, until_idle

pytestmark = pytest.mark.usefixtures("reloaded")

QUICK = "import jupyter_tfguard.kernel.widget_views as views; views.SILENT_SECONDS = 5.0\n"
SLEEP = "import time; time.sleep(60)"


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


def test_a_view_of_a_page_that_is_gone_is_fed_no_more_and_comes_back(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    told = opened(panel("pass"))["data"]["state"]
    here = {"request": "here", "panel": told["panel"], "view": "a"}
    request = kernel.send(QUICK + SLEEP)
    for _ in range(4):  # longer than a view may be silent
        assert ask(kernel, **here)["state"]["hertz"] == 4.0
        assert news(messages(kernel, 2.0))
    end = time.monotonic() + 30  # its page is closed, and says nothing
    while (found := messages(kernel, 3.0)) and panel_data(found):
        assert time.monotonic() < end, "it is fed for ever"
    assert ask(kernel, **here)["status"] == "ok"
    back = messages(kernel, 3.0)
    assert [content["type"] for content in panel_data(back)][:2] == ["history", "state"]
    assert len(news(back, "history")) == 1
    kernel.manager.interrupt_kernel()
    until_idle(kernel, request)


def test_a_view_that_cannot_be_heard_is_fed_however_long_the_cell_runs(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    comm_id = opened(panel("pass"))["comm_id"]
    tell(kernel, comm_id, {"type": "opened", "view": "a"})
    messages(kernel, 1.0)
    request = kernel.send(QUICK + SLEEP)
    messages(kernel, 12.0)
    assert news(messages(kernel, 3.0))
    kernel.manager.interrupt_kernel()
    until_idle(kernel, request)


def test_a_kernel_that_could_not_hear_does_not_take_that_for_silence(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    told = opened(panel("pass"))["data"]["state"]
    here = {"request": "here", "panel": told["panel"], "view": "a"}
    # Native code that keeps the interpreter for itself, for longer than a view may be silent.
    held = "import ctypes; ctypes.PyDLL(None).sleep(12)\n"
    request = kernel.send(
        f"{QUICK.replace('5.0', '8.0')}import time; time.sleep(1)\n{held}time.sleep(2)"
    )
    assert ask(kernel, **here)["status"] == "ok"
    found = until_idle(kernel, request)
    told_at = [one["state"]["time"] for one in news(found) if one["state"]["busy"]]
    after = [when for when, before in zip(told_at[1:], told_at, strict=False) if when - before > 8]
    assert len(after) == 1
    assert sum(when >= after[0] for when in told_at) >= 3


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
    asked = "print('tfguard_request' in get_ipython().kernel.control_handlers)"
    assert kernel.run(asked).stdout == "False\n"
