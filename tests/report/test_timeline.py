"""What a report draws: events of every kind, and the curves beside the kernel's own memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

KINDS = [
    "cell",
    "fit",
    "epoch",
    "checkpoint",
    "warning",
    "gpu_oom",
    "memory_stop",
    "hang",
    "crash",
]


def fit_that_dies() -> dict[str, Any]:
    """A memory death with a fit of three epochs before it; seven seconds are on the curve."""
    return bundle_of("cgroup_oom/fires-v2-own-limit.json")


def with_events(*events: dict[str, Any]) -> dict[str, Any]:
    bundle = fit_that_dies()
    died = bundle["identity"]["died"]
    bundle["kernel"]["events"] = [
        {"n": n, "m": 100.0 + event["t"]} | event | {"t": died + event["t"]}
        for n, event in enumerate(events)
    ]
    return bundle


def memory_of(bundle: dict[str, Any]) -> dict[str, Any]:
    report = to_report(bundle, diagnose(bundle))
    json.dumps(report, allow_nan=False)
    found: dict[str, Any] = report["memory"]
    return found


def told(bundle: dict[str, Any]) -> list[tuple[str, str]]:
    return [(event["kind"], event["label"]) for event in memory_of(bundle)["events"]]


def test_a_fit_that_dies_is_shown_from_its_cell_to_its_end() -> None:
    found = told(
        with_events(
            {"kind": "cell_start", "t": -6.0, "execution_count": 12},
            {"kind": "fit_start", "t": -4.5, "what": "fit"},
            {"kind": "epoch_end", "t": -3.5, "epoch": 1},
            {"kind": "checkpoint", "t": -3.4, "path": "/m.keras"},
            {"kind": "gpu_oom", "t": -2.0},
            {"kind": "memory_stop", "t": -1.9},
        )
    )
    assert found == [
        ("cell", "[12]"),
        ("fit", "[12] fit"),
        ("epoch", "epoch 1"),
        ("checkpoint", "checkpoint"),
        ("gpu_oom", "GPU OOM"),
        ("memory_stop", "stopped"),
        ("warning", "90 % of the limit"),
        ("crash", "ended"),
    ]


def test_of_many_epochs_some_are_reported_and_the_last_always() -> None:
    epochs = [{"kind": "epoch_end", "t": -6 + n / 1000, "epoch": n} for n in range(1, 5001)]
    found = [label for kind, label in told(with_events(*epochs)) if kind == "epoch"]
    assert 15 < len(found) <= 30
    assert found[-1] == "epoch 5000"
    assert found == sorted(found, key=lambda label: int(label.split()[1]))


@pytest.mark.parametrize("strange", [-1, 1e308, "x" * 9000, {}, float("nan")])
def test_a_forged_journal_does_no_harm(strange: object) -> None:
    kinds = ["cell_start", "cell_end", "fit_start", "fit_end", "epoch_end", "checkpoint"]
    kinds += ["gpu_oom", "memory_stop"]
    bundle = with_events(*({"kind": kind, "t": -2.0} for kind in kinds))
    for event in bundle["kernel"]["events"]:
        for key in ("execution_count", "what", "epoch", "written", "path", "ok", "by"):
            event[key] = strange
    for event in memory_of(bundle)["events"]:
        assert event["kind"] in KINDS
        assert len(event["label"]) < 70


def test_events_before_the_curve_and_after_the_death_are_left_out() -> None:
    found = told(
        with_events(
            {"kind": "cell_start", "t": -6.0, "execution_count": 3},
            {"kind": "epoch_end", "t": -9e5, "epoch": 1},
            {"kind": "epoch_end", "t": 500.0, "epoch": 2},
        )
    )
    assert [kind for kind, _ in found] == ["cell", "warning", "crash"]


def test_a_hang_is_on_the_curve() -> None:
    bundle = fit_that_dies()
    died = bundle["identity"]["died"]
    hang = {"since": died - 3.0, "noticed": died - 1.0, "wait": "lock", "in_fit": True}
    bundle["server"]["hang"] = hang
    events = {event["kind"]: event["time"] for event in memory_of(bundle)["events"]}
    assert events["hang"] == pytest.approx(died - 3.0, abs=0.01)


def test_children_and_what_the_limit_counts_are_curves_of_their_own() -> None:
    bundle = fit_that_dies()
    died = bundle["identity"]["died"]
    server = bundle["server"]
    server["columns"] = [*server["columns"], "process.children_rss_bytes"]
    server["rows"] = [[*row, 5e8] for row in server["rows"]]
    curves = {curve["name"]: curve for curve in memory_of(bundle)["curves"]}
    assert list(curves) == ["limit.used_bytes", "process.children_rss_bytes"]
    assert "process.children_rss_bytes" not in [
        c["name"] for c in memory_of(fit_that_dies())["curves"]
    ]
    assert curves["limit.used_bytes"]["title"] == "In use in the container"
    used = curves["limit.used_bytes"]["samples"]
    assert used[-1][0] == pytest.approx(died - 1.0)
    assert used[-1][1] > 0.9 * 4 * 2**30
    assert {value for _, value in curves["process.children_rss_bytes"]["samples"]} == {500_000_000}


def test_a_card_that_the_kernel_used_has_its_curves_with_its_own_limit() -> None:
    bundle = fit_that_dies()
    died = bundle["identity"]["died"]
    rows = [[died - 5 + n, n * 1e9, 2e9 + n * 1e9, 40.0] for n in range(5)]
    columns = ["time", "own_bytes", "memory_used_bytes", "temperature_celsius"]
    card = {"nvml_index": 1, "memory_total_bytes": 25769803776, "columns": columns, "rows": rows}
    idle = card | {"nvml_index": 0, "rows": [[when, 0.0, used, 40.0] for when, _, used, _ in rows]}
    bundle["server"]["gpus"] = [idle, card]
    curves = [c for c in memory_of(bundle)["curves"] if c["name"].startswith("gpu")]
    assert [c["title"] for c in curves] == ["GPU 1: this kernel", "GPU 1: in use"]
    assert curves[0]["limit_bytes"] == 25769803776
    assert curves[0]["limit_name"] == "GPU 1 memory"
    assert curves[0]["samples"][-1][1] == 4_000_000_000
