"""What is said of a crash from two readings of its group; what is unknown stays so."""

from __future__ import annotations

import os

import pytest

from jupyter_tfguard.record.facts import Counters, ExitFacts, GroupCounters, ServerFacts
from jupyter_tfguard.watch.crash.child_kill import ChildKill, ChildKillDetector
from jupyter_tfguard.watch.crash.crash import of_child, of_kernel

pytestmark = pytest.mark.quick

KILLED = ExitFacts("SIGKILL", None, "waitid")
BEFORE = Counters(time=1.0, group_pids=(7, 8, 9))
AFTER = Counters(time=2.0, group_pids=(9,))
SEEN = ServerFacts(None, 2.0, before=BEFORE, unavailable={"cgroup": "not visible"})


def test_the_neighbours_that_are_gone_are_named_without_the_kernel() -> None:
    assert of_kernel(SEEN, 7, (), KILLED, AFTER).ended_neighbours == (8,)
    unread = Counters(time=2.0)
    assert of_kernel(SEEN, 7, (), KILLED, unread).ended_neighbours is None


def test_the_neighbours_of_a_killed_child_are_named_without_it() -> None:
    facts = of_child(SEEN, ChildKill(BEFORE, AFTER, (8,), 2.0, frozenset({8})), (8,))
    assert (facts.ended_neighbours, facts.ended_children) == ((7,), (8,))


def test_an_exit_status_that_nobody_read_is_named_with_what_else_was_not() -> None:
    facts = of_kernel(SEEN, 7, (), None, AFTER)
    assert facts.exit is None
    assert set(facts.unavailable) == {"cgroup", "exit"}


def test_of_a_pool_whose_workers_are_killed_again_and_again_one_kill_a_minute_is_reported() -> None:
    detector = ChildKillDetector()
    ended = 1 << 22  # no process has this id
    found = []
    for second in range(150):
        group = GroupCounters("/kernel", 2, own=True, oom_kill_count=second // 3)
        detector.poll(Counters(float(second), (group,)), (ended,))
        kill = detector.take(second + 0.5)
        found += [] if kill is None else [kill.time]
    assert found == [3.0, 63.0, 123.0]


def test_a_victim_that_is_still_ending_is_known_when_another_child_is_gone() -> None:
    detector = ChildKillDetector()
    ended, ending = 1 << 22, os.getpid()
    for second, kills in enumerate((0, 1)):
        group = GroupCounters("/kernel", 2, own=True, oom_kill_count=kills)
        detector.poll(Counters(float(second), (group,)), (ended, ending))
    kill = detector.take(3.0)
    assert kill is not None
    assert (kill.ended, kill.known) == ((ended,), {ended, ending})
