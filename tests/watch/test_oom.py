"""Real kills by the kernel's out-of-memory killer, in a memory group of our own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from jupyter_tfguard.memory.groups import MemoryGroup
from tests.rigs.waiting import wait_until

from .conftest import MIB, Start, Watch, enter

GROW = """
import sys, time
print(flush=True)
if not sys.stdin.readline():
    sys.exit()  # the test is over
held = []
while True:
    held.append(bytearray(4 << 20)); time.sleep(0.01)
"""
PARENT = """
import subprocess, sys
kid = subprocess.Popen([sys.executable, "-c", {child!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
kid.stdout.readline()
print(kid.pid, flush=True)
sys.stdin.readline()
kid.stdin.write(b"go\\n"); kid.stdin.flush()
kid.wait()
import time
time.sleep(60)
"""
BYSTANDER = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=sys.stdin)
print(flush=True)
time.sleep(60)
"""
Limited = Callable[[int], MemoryGroup]


@pytest.fixture(params=["with the kernel log", "without the kernel log"])
def log(request: pytest.FixtureRequest, watch: Watch) -> None:
    """Most users may not read the kernel's log."""
    reader = watch.watcher._crashes.log
    if request.param == "without the kernel log":
        reader._give_up("not permitted")
    elif reader.reason is not None:
        pytest.skip(reader.reason)


def test_an_oom_kill_is_proven_by_the_group_s_counters(
    watch: Watch, start: Start, limited_group: Limited
) -> None:
    group = limited_group(150 * MIB)
    process = start(GROW)
    enter(group, process.pid)
    monitored = watch.begin(process.pid)
    wait_until(lambda: monitored.group.path == group.path)
    wait_until(
        lambda: monitored.before is not None and monitored.before.groups[0].path == group.path
    )
    assert monitored.limit() == (150 * MIB, "cgroup")
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    crash = watch.crash()
    facts = crash.facts
    assert facts.exit is not None
    assert facts.exit.signal == "SIGKILL"
    assert facts.before is not None
    assert facts.after is not None
    before, after = facts.before.groups[0], facts.after.groups[0]
    assert before.path == after.path == group.path
    assert before.own
    assert after.own
    assert before.oom_kill_count == 0
    assert after.oom_kill_count == 1
    assert (after.failcnt_count or 0) > (before.failcnt_count or 0)
    assert after.limit_bytes == 150 * MIB
    assert (after.peak_bytes or 0) > 140 * MIB
    if group.version == 2:
        assert after.oom_count == 1
    column = facts.columns.index("process.rss_bytes")
    assert max(row[column] or 0 for row in facts.rows) > 100 * MIB
    if crash.system_log.readable:
        assert any(f"Killed process {process.pid}" in line.text for line in crash.system_log.lines)
        assert all(abs(line.time - facts.died) < 30 for line in crash.system_log.lines)
    else:
        assert crash.system_log.reason


def test_a_plain_kill_at_the_limit_leaves_the_counters_alone(
    watch: Watch, start: Start, limited_group: Limited
) -> None:
    group = limited_group(200 * MIB)
    process = start(f"x = bytearray({150 * MIB}); print(flush=True); import sys; sys.stdin.read()")
    enter(group, process.pid)
    monitored = watch.begin(process.pid)
    wait_until(
        lambda: monitored.before is not None and monitored.before.groups[0].path == group.path
    )
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not monitored.handle.is_running())
    watch.watcher.ended(monitored)
    facts = watch.crash().facts
    assert facts.before is not None
    assert facts.after is not None
    assert facts.after.groups[0].oom_kill_count == facts.before.groups[0].oom_kill_count == 0


def test_a_killed_child_is_reported_once_while_the_kernel_lives(
    watch: Watch, log: None, start: Start, limited_group: Limited
) -> None:
    group = limited_group(150 * MIB)
    process = start(PARENT.format(child=GROW))
    child = int(_children(process.pid)[0])
    enter(group, process.pid)
    enter(group, child)
    monitored = watch.begin(process.pid)
    wait_until(
        lambda: monitored.before is not None and monitored.before.groups[0].path == group.path
    )
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    crash = watch.crash()
    facts = crash.facts
    assert facts.kernel_alive
    assert facts.exit is None
    assert facts.ended_children == (child,)
    assert crash.identity.pid == process.pid
    assert facts.before is not None
    assert facts.after is not None
    assert (facts.before.groups[0].oom_kill_count, facts.after.groups[0].oom_kill_count) == (0, 1)
    time.sleep(3)
    assert watch.crashes.empty()
    assert monitored.handle.is_running()


def test_a_neighbour_s_oom_kill_is_not_taken_for_a_child_s(
    watch: Watch, log: None, start: Start, limited_group: Limited
) -> None:
    group = limited_group(150 * MIB)
    quiet, greedy = start(BYSTANDER), start(GROW)
    for process in (quiet, greedy):
        enter(group, process.pid)
    living, dying = watch.begin(quiet.pid), watch.begin(greedy.pid)
    wait_until(lambda: bool(living.children))
    for monitored in (living, dying):
        wait_until(
            lambda w=monitored: w.before is not None and w.before.groups[0].path == group.path
        )
    assert greedy.stdin is not None
    greedy.stdin.write(b"go\n")
    greedy.stdin.flush()
    wait_until(lambda: not dying.handle.is_running())
    assert quiet.stdin is not None
    quiet.stdin.close()  # its child ends in the same second, of its own accord
    quiet.stdin = None
    watch.watcher.ended(dying)
    assert watch.crash().identity.pid == greedy.pid
    time.sleep(3)
    assert watch.crashes.empty()


def _children(pid: int) -> list[str]:
    with open(f"/proc/{pid}/task/{pid}/children") as listed:
        return listed.read().split()
