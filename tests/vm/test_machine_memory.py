"""The whole machine runs out of memory, for real: the kernel is the victim, or a neighbour is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_tfguard.report import text

if TYPE_CHECKING:
    from tests.vm.conftest import Told


def test_a_kernel_that_the_machines_oom_killer_chose_is_a_host_oom(told: Told) -> None:
    seen = told("host")
    report = seen["report"]
    assert (report["cause"], report["confidence"]) == ("host_oom", "certain"), report
    assert seen["host_kills"] == 1
    # It was counted in the kernel's group, which has no limit that could have been hit.
    assert seen["events"]["memory.events"]["oom_kill"] == 1
    assert seen["events"]["memory.events"]["oom"] == 0
    log = [line["text"] for line in seen["system_log"]["lines"]]
    assert any("constraint=CONSTRAINT_NONE" in line for line in log), log
    assert report["memory"]["limit_name"] == "machine memory"
    assert "container" not in report["title"]


def test_the_oom_kill_of_a_neighbour_is_not_blamed_for_a_later_kill(told: Told) -> None:
    seen = told("neighbour")
    report = seen["report"]
    assert (seen["neighbour_status"], seen["host_kills"]) == (-9, 1)
    assert report["cause"] == "sigkill_unattributed", report
    assert report["confidence"] == "certain"
    assert "host_oom" not in [finding["cause"] for finding in report["other_findings"]]
    assert "killed for memory" not in text.render(report | {"memory": None})


def test_the_oom_kill_of_a_neighbour_in_the_same_group_and_moment_is_not_blamed(
    told: Told,
) -> None:
    seen = told("neighbour at once")
    report = seen["report"]
    before, after = (seen["server"][when]["groups"][0] for when in ("before", "after"))
    assert before["own"]
    assert seen["neighbour_status"] == -9
    # The trap: the kill was counted in the kernel's own group between the last look and the death.
    assert after["oom_kill_count"] - before["oom_kill_count"] == 1, seen["server"]
    assert (report["cause"], report["confidence"]) == ("sigkill_unattributed", "likely"), report
    assert "host_oom" not in [finding["cause"] for finding in report["other_findings"]]
