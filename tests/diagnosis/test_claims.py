"""What rests on the kernel's own word is never certain, however much the server saw besides."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import Example, bundle_of, examples

pytestmark = pytest.mark.quick

MEMORY = ("process.rss_bytes", "process.peak_bytes", "cgroup.used_bytes", "host.available_bytes")


def claims_instead(bundle: dict[str, Any], names: tuple[str, ...]) -> None:
    """What the server saw of these metrics is now said by the kernel alone."""
    server = bundle["server"]
    columns = server["columns"]
    kept = [n for n, name in enumerate(columns) if name not in names]
    moved = [n for n, name in enumerate(columns) if name == "time" or name in names]
    rows = server["rows"]
    bundle["kernel"]["samples"] = {
        "columns": [columns[n] for n in moved],
        "rows": [[row[n] for n in moved] for row in rows],
    }
    server["columns"] = [columns[n] for n in kept]
    server["rows"] = [[row[n] for n in kept] for row in rows]


def test_a_full_v1_group_that_only_the_kernel_saw_full_is_not_certain() -> None:
    bundle = bundle_of("cgroup_oom/fires-v1-failcnt.json")
    assert diagnose(bundle).best.confidence is Confidence.CERTAIN
    for which in ("before", "after"):
        for group in bundle["server"][which]["groups"]:
            group["peak_bytes"] = group["used_bytes"] = None
    bundle["server"]["peak_bytes"] = None
    claims_instead(bundle, MEMORY)
    best = diagnose(bundle).best
    assert best.cause == "cgroup_oom"
    assert best.confidence is Confidence.LIKELY


def causes_of_the_end(bundle: dict[str, Any]) -> list[tuple[str, Confidence]]:
    found = diagnose(bundle).findings
    return [(finding.cause, finding.confidence) for finding in found if not finding.beside]


@pytest.mark.parametrize("example", examples("fires"), ids=str)
def test_older_claims_change_no_cause_of_the_end(example: Example) -> None:
    """A kernel may write into its summaries what it likes: a curve is drawn of it, and at most a growth is seen in it."""
    honest = causes_of_the_end(example.bundle)
    bundle = example.bundle
    if bundle["kernel"] is None or not bundle["server"]:
        return
    died = bundle["identity"]["died"]
    names = [name + part for name in MEMORY for part in (".min", ".max")]
    rows = [[died - 400 + n, *([0.0, 2.0**60] * len(MEMORY))] for n in range(390)]
    for resolution in ("seconds", "minutes"):
        bundle["kernel"][resolution] = {"columns": ["time", *names], "rows": rows}
    assert causes_of_the_end(bundle) == honest
    assert len(Evidence(bundle).timeline("process.rss_bytes")) > 380


def test_a_loss_that_no_float_can_hold_keeps_no_report_from_being_written() -> None:
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    event = {
        "kind": "epoch_end",
        "fit_id": 1,
        "epoch": 1,
        "t": 1.0,
        "logs": {"loss": 10**400, "mae": 2},
    }
    bundle["kernel"]["events"].append(event)
    report = to_report(bundle, diagnose(bundle))
    assert report["left"]["metrics"] == {"columns": ["epoch", "mae"], "rows": [[1, 2.0]]}
