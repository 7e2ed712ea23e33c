"""Memory limits of cgroup v2, for real: the kernel's own, an ancestor's, a container's, seen and unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_tfguard.report import text

if TYPE_CHECKING:
    from tests.vm.conftest import Told

MIB = 1 << 20


def evidence(report: dict[str, Any]) -> list[str]:
    return [f"{fact['source']}: {fact['text']}" for fact in report["evidence"]]


def counted(events: dict[str, dict[str, int]], name: str = "memory.events") -> dict[str, int]:
    """Whether a limit was hit (1), and how many processes were killed for it.

    While the victim is dying, other allocations of the group may hit the limit again: ``oom`` counts each of them.
    """
    return {"oom": min(events[name]["oom"], 1), "oom_kill": events[name]["oom_kill"]}


def test_the_limit_of_the_kernels_own_group_is_certain_and_named(told: Told) -> None:
    seen = told("own limit")
    report = seen["report"]
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "certain"), report
    assert "128 MiB" in report["title"]
    assert report["memory"]["limit_bytes"] == 128 * MIB
    assert report["memory"]["limit_name"] == "container limit"
    assert report["memory"]["peak_bytes"] > 0.8 * 128 * MIB
    assert seen["count"] == 1
    assert seen["server"]["exit"]["signal"] == "SIGKILL"
    assert counted(seen["events"]) == {"oom": 1, "oom_kill": 1}
    before, after = (
        {group["path"]: group for group in seen["server"][when]["groups"]}[seen["path"]]
        for when in ("before", "after")
    )
    assert after["oom_kill_count"] - before["oom_kill_count"] == 1
    assert after["oom_count"] > before["oom_count"]
    assert "start of cell [2]" in " ".join(evidence(report))


def test_a_limit_around_the_kernels_own_group_is_reported_as_that_of_the_ancestor(
    told: Told,
) -> None:
    seen = told("ancestor limit")
    report = seen["report"]
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "certain"), report
    assert "128 MiB" in report["title"]
    assert any("the limit belongs to the parent group /outer" in t for t in evidence(report))
    # The kernel's own group counts the kill and no limit; the ancestor counts its limit, and no kill of its own.
    assert counted(seen["inner"]) == {"oom": 0, "oom_kill": 1}
    assert counted(seen["outer"], "memory.events.local") == {"oom": 1, "oom_kill": 0}
    log = " ".join(line["text"] for line in seen["system_log"]["lines"])
    assert "oom_memcg=/outer,task_memcg=/outer/inner" in log


def test_without_the_kernels_log_the_counters_alone_are_certain(told: Told) -> None:
    seen = told("hidden log")
    report = seen["report"]
    assert seen["system_log"]["readable"] is False
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "certain"), report
    assert "128 MiB" in report["title"]
    # Nobody named the victim: that it was this kernel follows from nobody else having ended.
    assert seen["server"]["ended_neighbours"] == []
    assert any("No other process in the group ended" in fact for fact in evidence(report))
    assert any("cannot be read here" in line for line in report["not_checked"])


def test_without_the_kernels_log_a_killed_child_makes_no_lack_of_memory_certain(told: Told) -> None:
    seen = told("hidden child")
    assert counted(seen["events"]) == {"oom": 1, "oom_kill": 1}
    assert seen["server"]["exit"]["signal"] == "SIGKILL"
    found = [seen["report"], *seen["report"]["other_findings"]]
    certain = {finding["cause"] for finding in found if finding["confidence"] == "certain"}
    # Where the counters rose a look earlier, the kill by hand is certain, and rightly.
    assert certain <= {"sigkill_unattributed"}, seen["report"]


def test_a_server_killed_with_its_kernel_is_followed_by_one_report(told: Told) -> None:
    death, seen = told("group kill"), told("orphan")
    assert death["server_status"] == -9
    assert death["events"]["memory.events"]["oom_group_kill"] == 1
    report = seen["report"]
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "likely"), report
    assert "270 MiB" in report["title"]
    assert seen["server"] == {}
    words = f"Its Jupyter server (process {death['server_pid']}) was also killed"
    assert f"system log: {words}" in evidence(report)
    assert any("no server saw the crash" in line for line in report["not_checked"])
    assert "Its Jupyter server" in text.render(report | {"memory": None})


def test_the_orphan_is_reported_exactly_once(told: Told) -> None:
    assert told("orphan")["count"] == 1
    again = told("orphan again")
    assert (again["code"], again["count"]) == (0, 1)


def test_a_kernel_without_a_server_is_reported_by_the_command(told: Told) -> None:
    seen = told("unwatched")
    report = seen["report"]
    assert counted(seen["events"]) == {"oom": 1, "oom_kill": 1}
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "likely"), report
    assert "128 MiB" in report["title"]


def test_a_cell_is_stopped_before_the_limit_of_version_2(told: Told) -> None:
    seen = told("stopped")
    assert counted(seen["events"]) == {"oom": 0, "oom_kill": 0}
    assert seen["fill"]["ename"] == "HostMemoryLimitReached", seen
    assert "of 128 MiB (container limit) were left" in seen["fill"]["evalue"]
    assert seen["at once"]["ename"] == "MemoryError"
    assert {seen[name]["status"] for name in ("import", "kept", "retry", "alive")} == {"ok"}


def test_the_demos_limit_holds_and_leaves_nothing(told: Told) -> None:
    seen = told("demo")
    assert seen["status"] == -9
    assert seen["path"].startswith("/tfguard-demo-")
    assert counted(seen["events"]) == {"oom": 1, "oom_kill": 1}
    assert seen["swap_max"] == "0"
    assert seen["removed"] is True
