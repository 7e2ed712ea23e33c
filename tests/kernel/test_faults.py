"""Python stacks of fatal and terminating signals, and whose handlers win."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.kernel.rig import GuardedKernel
from tests.rigs.waiting import wait_until

Make = Callable[..., GuardedKernel]


def test_a_terminating_signal_leaves_a_stack_and_its_status(new_kernel: Make) -> None:
    kernel = new_kernel()
    kernel.send(
        "import time\ndef where_it_was():\n    open('there', 'w').close()\n    time.sleep(60)\nwhere_it_was()"
    )
    wait_until((kernel.folder / "work" / "there").exists, "the cell's code to run")
    kernel.manager.provisioner.process.send_signal(signal.SIGTERM)
    assert kernel.wait_for_end() == -signal.SIGTERM
    recorded = kernel.recording()
    assert list(recorded.signal_texts) == ["SIGTERM"]
    assert "where_it_was" in recorded.signal_texts["SIGTERM"]
    assert recorded.end is None


def test_a_signal_is_noted_while_native_code_holds_the_gil(new_kernel: Make) -> None:
    kernel = new_kernel()
    kernel.send("import re\nopen('there', 'w').close()\nre.match(r'(a+)+$', 'a' * 40 + 'b')")
    wait_until((kernel.folder / "work" / "there").exists, "the cell's code to run")
    kernel.manager.provisioner.process.send_signal(signal.SIGHUP)
    assert kernel.wait_for_end() == -signal.SIGHUP
    assert "SIGHUP" in kernel.recording().signal_texts


def test_a_faulthandler_of_the_users_own_is_left_alone(new_kernel: Make) -> None:
    kernel = new_kernel(before="import faulthandler; faulthandler.enable(); del faulthandler")
    assert kernel.recording().header["guard"]["faulthandler"] == "user"
    assert kernel.die_watched("import ctypes; ctypes.string_at(0)") == -signal.SIGSEGV
    recorded = kernel.recording()
    assert recorded.fault_text == ""
    # It went to fd 2, as the user wanted; and so into our copy.
    assert "Fatal Python error: Segmentation fault" in recorded.stderr_tail


def test_a_signal_handler_of_the_users_own_is_left_alone(new_kernel: Make) -> None:
    kernel = new_kernel(
        before="import signal; signal.signal(signal.SIGTERM, lambda *_: print('mine')); "
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); del signal"
    )
    ran = kernel.run("import os, signal; os.kill(os.getpid(), 15); os.kill(os.getpid(), 1)")
    assert ran.stdout == "mine\n"
    assert kernel.recording().signal_texts == {}
    # One that comes after ours wins as well, and unloading leaves it there.
    code = "signal.signal(signal.SIGQUIT, lambda *_: print('late'))\n%unload_ext tfguard\nos.kill(os.getpid(), 3)"
    assert kernel.run(code).stdout == "late\n"


FORKED = """
import os, signal, time
child = os.fork()
if child == 0:
    {inside}
    time.sleep(60)
    os._exit(0)
time.sleep(0.5)
{outside}
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_killed_forked_child_leaves_no_trace_of_its_own(new_kernel: Make) -> None:
    kernel = new_kernel()
    terminated = kernel.run(FORKED.format(inside="pass", outside="os.kill(child, signal.SIGTERM)"))
    assert terminated.stdout == "-15\n"
    crashed = kernel.run(FORKED.format(inside="import ctypes; ctypes.string_at(0)", outside=""))
    assert crashed.stdout == "-11\n"
    recorded = kernel.recording()
    assert recorded.fault_text == ""
    assert recorded.signal_texts == {}
    # The parent itself is still guarded.
    assert kernel.die("import ctypes; ctypes.string_at(0)") == -signal.SIGSEGV
    assert "Segmentation fault" in kernel.recording().fault_text
