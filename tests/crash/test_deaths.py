"""Kernels of a real server really die, each in another way, and each gets the right cause."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.demo.limits import NoLimitPossible, make_limit
from jupyter_tfguard.report import text
from tests.crash.conftest import no_cgroup

if TYPE_CHECKING:
    from tests.crash.conftest import Kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and cgroups of Linux")

MIB = 1024 * 1024
SEND = "import os, signal; os.kill(os.getpid(), signal.{})"

# name, code, cause, exit chip
DEATHS = [
    ("kill -9 of itself", SEND.format("SIGKILL"), "sigkill_unattributed", "SIGKILL"),
    ("SIGTERM", SEND.format("SIGTERM"), "terminated_by_user_or_manager", "SIGTERM"),
    ("SIGHUP", SEND.format("SIGHUP"), "terminated_by_user_or_manager", "SIGHUP"),
    ("SIGXCPU", SEND.format("SIGXCPU"), "terminated_by_user_or_manager", "SIGXCPU"),
    ("null pointer", "import ctypes; ctypes.string_at(0)", "segfault_native", "SIGSEGV"),
    (
        "bus error beyond the end of a mapped file",
        "import mmap, tempfile\nf = tempfile.TemporaryFile(); f.truncate(8192)\n"
        "m = mmap.mmap(f.fileno(), 8192); f.truncate(0)\nm[5000]",
        "segfault_native",
        "SIGBUS",
    ),
    ("SIGILL", SEND.format("SIGILL"), "illegal_instruction", "SIGILL"),
    ("SIGFPE", SEND.format("SIGFPE"), "unknown", "SIGFPE"),
    ("SIGQUIT", SEND.format("SIGQUIT"), "unknown", "SIGQUIT"),
    ("SIGUSR2", SEND.format("SIGUSR2"), "unknown", "SIGUSR2"),
    ("abort without words", "import os; os.abort()", "unknown", "SIGABRT"),
    (
        "double free",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
        "p = ctypes.c_void_p(libc.malloc(64))\nlibc.free(p)\nlibc.free(p)",
        "glibc_abort_heap_corruption",
        "SIGABRT",
    ),
    (
        "std::bad_alloc",
        "import ctypes\nctypes.PyDLL('libstdc++.so.6')['_ZSt17__throw_bad_allocv']()",
        "cpu_alloc_failure",
        "SIGABRT",
    ),
    ("os._exit(3)", "import os; os._exit(3)", "sys_exit", "exit code 3"),
    ("os._exit(0)", "import os; os._exit(0)", "sys_exit", "exit code 0"),
    ("quit()", "quit()", "sys_exit", "exit code 0"),
    (
        "a fatal line, then exit code 1",
        "import os\nos.write(2, b'2026-11-21 02:14:05.1: F made/up/engine.cc:7] Check failed: n > 0 (0 vs. 0)\\n')\n"
        "os._exit(1)",
        "tf_check_failed",
        "exit code 1",
    ),
]


@pytest.mark.parametrize(("name", "code", "cause", "chip"), DEATHS, ids=[d[0] for d in DEATHS])
def test_the_cause_is_right(kernel: Kernel, name: str, code: str, cause: str, chip: str) -> None:
    kernel.start(code)
    report = kernel.report()
    assert (report["cause"], report["chips"][:1]) == (cause, [chip]), text.render(report)
    assert len(kernel.entries()) == 1
    assert report["activity"][0]["value"].startswith("[1] ")
    if cause == "unknown":
        assert chip in report["title"]


def test_a_plain_kill_from_outside_does_not_blame_memory(kernel: Kernel) -> None:
    kernel.start("import time; time.sleep(100)")
    time.sleep(0.5)
    os.kill(kernel.pid, signal.SIGKILL)
    report = kernel.report()
    assert report["cause"] == "sigkill_unattributed"
    assert report["confidence"] == "certain"
    printed = text.render(report).lower()
    assert "out of memory" not in printed
    assert "out-of-memory" not in printed


def test_the_python_stack_of_a_segfault_is_in_the_report(kernel: Kernel) -> None:
    kernel.start("import ctypes\ndef poke(a):\n    return ctypes.string_at(a)\npoke(0)")
    report = kernel.report()
    stack = "\n".join(report["python_stack"])
    assert "Segmentation fault" in stack
    assert "in poke" in stack
    assert any("in string_at" in fact["text"] for fact in report["evidence"])


def test_the_last_native_words_of_an_abort_are_in_the_report(kernel: Kernel) -> None:
    kernel.start(
        "import ctypes, os\nos.write(2, b'engine: cannot go on\\n')\nctypes.CDLL(None).abort()"
    )
    report = kernel.report()
    assert "engine: cannot go on" in report["native_tail"]


def test_a_kernel_killed_by_its_memory_limit_says_so_with_the_limit(kernel: Kernel) -> None:
    limit_bytes = 400 * MIB
    try:
        limit = make_limit(limit_bytes)
    except NoLimitPossible as no:
        no_cgroup(str(no))
    try:
        limit.add(kernel.pid)
        kernel.run("held = []")
        kernel.start(
            "import time\nwhile True:\n    held.append(bytearray(b'x' * (16 * 1024 * 1024)))\n    time.sleep(0.05)"
        )
        report = kernel.report(60)
    finally:
        kernel.close()
        limit.remove()
    printed = text.render(report)
    assert report["cause"] == "cgroup_oom", printed
    assert report["confidence"] == "certain", printed
    assert "400 MiB" in report["title"]
    assert report["memory"]["limit_bytes"] == limit_bytes
    assert report["memory"]["peak_bytes"] > 0.8 * limit_bytes
    assert "since cell [2] began" in printed


def test_a_child_killed_by_the_limit_is_told_while_the_kernel_lives(kernel: Kernel) -> None:
    try:
        limit = make_limit(500 * MIB)
    except NoLimitPossible as no:
        no_cgroup(str(no))
    eater = "import time\nheld = []\nwhile True:\n    held.append(bytearray(b'x' * (16 << 20)))\n    time.sleep(0.05)"
    try:
        limit.add(kernel.pid)
        time.sleep(1.5)
        # The child is the one the OOM killer must choose.
        kernel.run("import subprocess, sys, os")
        reply = kernel.run(
            f"p = subprocess.Popen([sys.executable, '-c', {eater!r}])\n"
            "open(f'/proc/{p.pid}/oom_score_adj', 'w').write('500')\ncode = p.wait()\nassert code == -9, code"
        )
        assert reply["status"] == "ok"
        ends = time.monotonic() + 15
        while not kernel.entries() and time.monotonic() < ends:
            time.sleep(0.1)
        (entry,) = kernel.entries()
        assert entry["cause"] == "child_oom_killed"
        assert entry["kernel_alive"] is True
        assert kernel.run("1 + 1")["status"] == "ok"
    finally:
        kernel.close()
        limit.remove()


def test_tensorflows_unknown_xla_flag_is_quoted(kernel: Kernel) -> None:
    kernel.start(
        "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_devices=2'\nimport tensorflow as tf\n"
        "tf.function(lambda x: x + x, jit_compile=True)(tf.ones(3))"
    )
    report = kernel.report(90)
    assert report["cause"] == "tf_check_failed", text.render(report)
    assert any("xla_force_host_platform_devices" in fact["text"] for fact in report["evidence"])
    assert "tensorflow" in report["versions"]
