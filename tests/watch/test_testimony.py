"""What is told of a death: from what was seen before it, and what is unknown stays so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_tfguard.record.facts import Counters, ExitFacts, GroupCounters
from jupyter_tfguard.units import GIB
from jupyter_tfguard.watch import testimony
from jupyter_tfguard.watch.child_kill import ChildKill, ChildKillDetector
from jupyter_tfguard.watch.exit_status import Ended

pytestmark = pytest.mark.quick

MIB = 1 << 20
KILLED = ExitFacts("SIGKILL", None, "waitid")
BEFORE = Counters(time=1.0, group_pids=(7, 8, 9))
AFTER = Counters(time=2.0, group_pids=(9,))
SEEN = testimony.Testimony(
    pids=frozenset({7}),
    peak_bytes=GIB,
    starter_peak_bytes=100 * MIB,
    columns=("time",),
    rows=((1.0,),),
    before=BEFORE,
    children=(),
    hang=None,
    answered=None,
    unavailable={"cgroup": "not visible"},
)


def test_the_neighbours_that_are_gone_are_told_without_the_kernel() -> None:
    assert SEEN.of_death(Ended(KILLED, None), AFTER, 2.0).ended_neighbours == (8,)


def test_the_neighbours_of_a_killed_child_are_told_without_it() -> None:
    facts = SEEN.of_child(ChildKill(BEFORE, AFTER, (8,), 2.0), (8,))
    assert facts.ended_neighbours == (7,)
    assert facts.ended_children == (8,)


@pytest.mark.parametrize("unread", ["before", "after"])
def test_where_the_group_could_not_be_read_its_neighbours_are_unknown(unread: str) -> None:
    counters = {"before": BEFORE, "after": AFTER, unread: Counters(time=1.5)}
    before, after = counters["before"], counters["after"]
    seen = replace(SEEN, before=before)
    assert seen.of_death(Ended(KILLED, None), after, 2.0).ended_neighbours is None
    assert SEEN.of_child(ChildKill(before, after, (8,), 2.0), (8,)).ended_neighbours is None


@pytest.mark.parametrize(
    ("by_rusage", "told"),
    [
        (None, (GIB, "VmHWM")),
        (3 * GIB, (3 * GIB, "rusage")),
        (102 * MIB, (GIB, "VmHWM")),  # inherited, but for the counters' own slack
        (200 * MIB, (GIB, "rusage")),
    ],
)
def test_a_peak_that_the_starter_may_have_left_is_not_the_kernels(
    by_rusage: int | None, told: tuple[int, str]
) -> None:
    facts = SEEN.of_death(Ended(KILLED, by_rusage), AFTER, 2.0)
    assert (facts.peak_bytes, facts.peak_source) == told


def test_an_exit_status_that_nobody_read_is_told_with_what_else_was_not() -> None:
    facts = SEEN.of_death(None, AFTER, 2.0)
    assert facts.exit is None
    assert set(facts.unavailable) == {"cgroup", "exit"}
    assert set(SEEN.unavailable) == {"cgroup"}


def test_of_a_pool_whose_workers_are_killed_again_and_again_one_kill_a_minute_is_reported() -> None:
    detector = ChildKillDetector()
    ended = 1 << 22  # no process has this id
    found = []
    for second in range(150):
        group = GroupCounters("/kernel", 2, own=True, oom_kill_count=second // 3)
        detector.look(Counters(float(second), (group,)), (ended,))
        kill = detector.take(second + 0.5)
        found += [] if kill is None else [kill.time]
    assert found == [3.0, 63.0, 123.0]
