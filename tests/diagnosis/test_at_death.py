"""What was in use when a kernel died is not what it, or others in its container, used at some time before."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.report.memory import memory_sentence
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

MIB = 1024 * 1024
DIED = 1_790_000_000.0


def killed(used_mib: int = 1352, *, peak: tuple[int, int] = (3072, 3072)) -> dict[str, Any]:
    """A kernel that was killed at `used_mib` of 3 GiB; `peak`: of its group before and after, MiB."""
    bundle = bundle_of("sigkill_unattributed/fires-plain-kill-9.json")
    server = bundle["server"]
    server["rows"] = [
        [DIED - 6 + n, used_mib * MIB, used_mib * MIB, 21_474_836_480] for n in range(6)
    ]
    server["peak_bytes"] = 1900 * MIB
    for which, mark in zip(("before", "after"), peak, strict=True):
        (group,) = server[which]["groups"]
        group |= {"version": 1, "limit_bytes": 3072 * MIB, "peak_bytes": mark * MIB}
        group["used_bytes"] = (used_mib if which == "before" else 100) * MIB
    return bundle


def said(finding: Finding) -> str:
    return " ".join([finding.title, *(a.text for a in finding.advice)])


def test_an_old_peak_of_the_container_is_no_high_use_at_the_end() -> None:
    text = said(diagnose(killed()).best)
    assert "Memory use was low: 1.32 GiB of 3.00 GiB" in text
    assert "daemon:" not in text.split("Memory use")[1]


@pytest.mark.parametrize(
    "bundle", [killed(2900), killed(peak=(1400, 3000))], ids=["last-samples", "rose-at-the-end"]
)
def test_high_use_at_the_end_still_fits_a_memory_daemon(bundle: dict[str, Any]) -> None:
    assert "High memory use fits a memory daemon" in said(diagnose(bundle).best)


def test_memory_that_the_dying_process_already_gave_back_was_in_use() -> None:
    bundle = killed(2900)
    bundle["server"]["rows"].append([DIED - 0.05, 20 * MIB, 300 * MIB, 21_474_836_480])
    bundle["server"]["before"]["groups"][0]["used_bytes"] = 300 * MIB
    assert "High memory use fits a memory daemon" in said(diagnose(bundle).best)


def test_an_end_without_a_watcher_is_not_near_a_limit_that_was_reached_hours_before() -> None:
    bundle = killed()
    counters = {"before": bundle["server"]["before"], "after": bundle["server"]["after"]}
    samples = {key: bundle["server"][key] for key in ("columns", "rows")}
    bundle |= {"server": None, "counters": counters}
    bundle["kernel"]["samples"] = samples
    best = diagnose(bundle).best
    assert best.cause == "unknown"
    assert "near its memory limit" not in best.title


def test_the_chip_says_of_when_an_old_peak_is() -> None:
    bundle = killed()
    rows = bundle["server"]["rows"]
    rows[:0] = [[DIED - 720, 1900 * MIB, 1900 * MIB, 21_474_836_480]]
    best = diagnose(bundle).best
    assert "peak 1.86 GiB, 12 min before" in best.chips
    assert any("1.32 GiB at the end" in fact.text for fact in best.because)


def test_a_peak_that_was_reached_before_the_running_cell_says_so() -> None:
    bundle = killed()
    bundle["kernel"]["events"][0]["peak_bytes"] = 1900 * MIB
    assert "peak 1.86 GiB, before this cell" in diagnose(bundle).best.chips


def test_the_peak_of_the_end_has_no_time() -> None:
    bundle = killed(2900)
    bundle["server"]["peak_bytes"] = 2950 * MIB
    assert "peak 2.88 GiB" in diagnose(bundle).best.chips


def test_the_sentence_under_the_chart_is_about_the_chart() -> None:
    bundle = killed()
    bundle["kernel"]["events"][0]["peak_bytes"] = 1900 * MIB
    report = to_report(bundle, diagnose(bundle))
    sentence = memory_sentence(report)
    assert sentence is not None
    assert "1.32 GiB → 1.32 GiB in 5.0 s" in sentence
