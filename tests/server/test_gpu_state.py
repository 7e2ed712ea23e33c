"""What the panel is told of the GPUs and of the kernels on them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.server.gpu_state import GpuWatch
from jupyter_tfguard.server.state import (
    GpuView,
    KernelView,
    history,
    kernel_state,
    other_kernel,
)
from jupyter_tfguard.watch.gpu.gpu_helper import Gpus
from jupyter_tfguard.watch.gpu.gpu_map import GpuMap
from jupyter_tfguard.watch.live.live import Live
from jupyter_tfguard.watch.monitored import MonitoredKernel
from tests.watch.gpu_rig import GIB, Machine, card, process, told

pytestmark = pytest.mark.quick

SAMPLES = Path(__file__).parents[1] / "wire"
GROWTH = {"guard": {"growth": {"state": "on", "text": "memory growth on"}}}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    found.close()


class Panel:
    """Cards, kernels, and what is told of them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.watch = GpuWatch(GpuMap(lambda: machine.monitored_kernels, machine.check))
        self.gpus = Gpus("starting")

    def take(self, *devices: dict[str, Any], seconds: float = 1.0, **more: Any) -> None:
        self.gpus = told(*devices, time=seconds, **more)
        self.watch.take(self.gpus)

    @property
    def view(self) -> GpuView:
        return GpuView(self.watch, self.gpus)

    def devices(self, kernel_id: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.view.state(kernel_id)["devices"]
        return found

    def kernel(self, monitored: MonitoredKernel) -> dict[str, Any]:
        view = KernelView(monitored.kernel, "python", monitored, None)
        return kernel_state(view, self.view)


@pytest.fixture
def panel(machine: Machine) -> Panel:
    return Panel(machine)


def test_a_device_has_the_shape_of_the_sample(panel: Panel) -> None:
    wanted = json.loads((SAMPLES / "status.json").read_text())["gpus"]
    ours = panel.machine.kernel("a")
    event = {"time": 1.0, "xid": 79, "nvml_index": 0}
    panel.take(card(0, [process(ours.identity.pid)]), events=(event,))
    found = panel.view.state()
    assert set(found) == set(wanted)
    (device,) = found["devices"]
    assert list(device) == list(wanted["devices"][0])
    assert list(device["holders"][0]) == list(wanted["devices"][0]["holders"][0])
    assert list(device["alarms"][0]) == list(wanted["devices"][0]["alarms"][0])


def test_rows_are_one_for_a_kernel_with_its_children_and_most_first(panel: Panel) -> None:
    machine = panel.machine
    child = machine.has(900_001)
    ours, other = machine.kernel("a", children=(child,)), machine.kernel("b")
    listed = [
        process(ours.identity.pid, 2 * GIB),
        process(child, 4 * GIB),
        process(other.identity.pid, 5 * GIB),
        process(machine.has(900_002), GIB, "tritonserver"),
    ]
    panel.take(card(0, listed))
    (device,) = panel.devices("a")
    rows = [
        (h["kernel_id"], h["notebook_path"], h["used_bytes"], h["is_this"])
        for h in device["holders"]
    ]
    assert rows == [
        ("a", "a.ipynb", 6 * GIB, True),
        ("b", "b.ipynb", 5 * GIB, False),
        (None, None, GIB, False),
    ]
    assert device["holders"][0]["pid"] == ours.identity.pid
    assert (device["holders"][2]["name"], device["other_bytes"]) == ("tritonserver", GIB // 2)
    assert panel.kernel(ours)["gpu"] == {"bytes": 6 * GIB, "tensorflow": []}
    view = KernelView(other.kernel, "python", other, None)
    assert other_kernel(view, panel.view)["gpu_bytes"] == 5 * GIB


def test_a_reloaded_page_gets_what_the_kernel_held_of_each_card(panel: Panel) -> None:
    machine = panel.machine
    ours, other = machine.kernel("a"), machine.kernel("b")
    panel.take(card(0, [process(ours.identity.pid, 2 * GIB)]), card(1, []))
    view = KernelView(ours.kernel, "python", ours, None)
    told_now = history(view, "a", panel.view)
    wanted = json.loads((SAMPLES / "history.json").read_text())
    assert set(told_now) == set(wanted)
    [(uuid, rows)] = told_now["gpu_rows"].items()
    assert uuid == panel.devices()[0]["gpu_uuid"]
    assert [row[1] for row in rows] == [2 * GIB]
    assert rows[0][0] == pytest.approx(time.time(), abs=60)
    view = KernelView(other.kernel, "python", other, None)
    assert history(view, "b", panel.view)["gpu_rows"] == {}


def test_what_cannot_be_identified_is_null_and_never_0(panel: Panel) -> None:
    ours = panel.machine.kernel("a")
    panel.take(card(0, [process(3_999_999, 70 * GIB)]))
    (device,) = panel.devices("a")
    assert (device["holders"], device["other_bytes"]) == (None, None)
    assert "cannot be identified here" in device["note"]
    assert panel.kernel(ours)["gpu"] == {"bytes": None, "tensorflow": []}


def test_a_divided_card_is_named_by_its_instances(panel: Panel) -> None:
    ours = panel.machine.kernel("a")
    listed = [process(ours.identity.pid, 4 * GIB)]
    divided = card(0, None, processes_reason="divided", mig_enabled=True)
    panel.take(divided, card(0, listed, mig_index=0, gpu_uuid="MIG-0"))
    whole, part = panel.devices("a")
    assert (whole["holders"], whole["other_bytes"]) == (None, None)
    assert whole["note"] == "divided"
    assert [h["is_this"] for h in part["holders"]] == [True]
    assert panel.kernel(ours)["gpu"]["bytes"] == 4 * GIB


@pytest.mark.parametrize("state", ["unavailable", "starting", "none"])
def test_numbers_of_a_driver_that_is_silent_now_are_not_repeated(panel: Panel, state: str) -> None:
    ours = panel.machine.kernel("a")
    panel.take(card(0, [process(ours.identity.pid)]))
    panel.gpus = Gpus(state, "because")
    assert panel.view.state("a") == {"state": state, "reason": "because", "devices": []}
    assert panel.kernel(ours)["gpu"] is None


def test_the_view_from_inside_names_its_card(panel: Panel) -> None:
    ours = panel.machine.kernel("a")
    memory = {"device": "GPU:0", "in_use_bytes": 3, "peak_bytes": 5, "limit_bytes": 9}
    ours.live = Live(
        gpu_memory=(
            memory | {"bus_id": "00000000:41:00.0"},
            memory | {"device": "GPU:1", "bus_id": None},
        )
    )
    panel.take(card(0, []), card(1, [process(ours.identity.pid)]))
    assert panel.kernel(ours)["gpu"]["tensorflow"] == [
        memory | {"gpu_uuid": "GPU-1"},
        memory | {"device": "GPU:1", "gpu_uuid": None},
    ]


def test_cells_and_an_oom_that_did_not_kill_are_passed_on(panel: Panel) -> None:
    ours = panel.machine.kernel("a")
    oom = {"time": 1.0, "execution_count": 3, "lines": ["a", "b", "c"]}
    stop = oom | {"execution_count": 4}
    ours.live = Live(cells=({"execution_count": 3},), gpu_oom=oom, memory_stop=stop)
    found = panel.kernel(ours)
    assert found["cells"] == [{"execution_count": 3}]
    assert (found["gpu_oom"], found["memory_stop"]) == (oom, stop)


class TestGrowth:
    def growth(self, panel: Panel, own: int, peak: int, **header: Any) -> dict[str, str]:
        ours = panel.machine.kernel("a")
        memory = {"device": "GPU:0", "bus_id": "0000:40:00.0", "peak_bytes": peak}
        ours.live = Live(header=header or GROWTH, gpu_memory=(memory,))
        for second in range(4):
            panel.take(card(0, [process(ours.identity.pid, own)]), seconds=float(second))
        growth: dict[str, str] = panel.kernel(ours)["guard"]["growth"]
        return growth

    def test_it_is_proven_by_what_was_taken(self, panel: Panel) -> None:
        assert self.growth(panel, 2 * GIB, GIB) == {
            "state": "proven",
            "text": "memory growth on, confirmed: 2.00 GiB of 80.0 GiB in use after the first steps",
        }

    def test_it_is_not_in_force_where_all_was_taken(self, panel: Panel) -> None:
        found = self.growth(panel, 76 * GIB, GIB)
        assert found["state"] == "not_in_force"
        assert (
            "TensorFlow allocated 76.0 GiB of 80.0 GiB at once and uses 1.00 GiB" in found["text"]
        )
        assert "restart the kernel" in found["text"]

    def test_it_stays_on_where_nothing_was_decided(self, panel: Panel) -> None:
        assert self.growth(panel, 76 * GIB, 70 * GIB)["state"] == "on"

    def test_no_other_state_is_overruled(self, panel: Panel) -> None:
        for state in ("off_by_user", "too_late", "capped", "async", "unknown"):
            header = {"guard": {"growth": {"state": state, "text": "as it is"}}}
            assert self.growth(panel, 2 * GIB, GIB, **header) == {
                "state": state,
                "text": "as it is",
            }


class TestAlarms:
    def slow(self, panel: Panel, ours: MonitoredKernel, seconds: int) -> list[Any]:
        hot = {"throttle_reasons": ["SwThermalSlowdown"]}
        for second in range(seconds):
            listed = [process(ours.identity.pid)]
            panel.take(card(0, listed, **hot), card(1, [], **hot), seconds=float(second))
        return [device["alarms"] for device in panel.devices()]

    def test_slow_clocks_are_reported_for_the_card_that_a_fit_runs_on(self, panel: Panel) -> None:
        ours = panel.machine.kernel("a")
        ours.live = Live(training={"active": True})
        (alarm,), nothing = self.slow(panel, ours, 12)
        assert alarm["text"].startswith("The card runs below full speed")
        assert nothing == []

    def test_without_a_fit_they_are_not(self, panel: Panel) -> None:
        assert self.slow(panel, panel.machine.kernel("a"), 30) == [[], []]

    def test_a_fault_is_reported_for_its_own_card(self, panel: Panel) -> None:
        event = {"time": 1.0, "xid": 79, "gpu_uuid": "GPU-1", "nvml_index": 1}
        panel.take(card(0, []), card(1, []), events=(event,))
        first, second = panel.devices()
        assert (len(first["alarms"]), len(second["alarms"])) == (0, 1)

    def test_a_fault_without_a_name_is_that_of_the_lost_card(self, panel: Panel) -> None:
        event = {"time": 1.0, "xid": 79, "gpu_uuid": None, "bus_id": None, "nvml_index": None}
        panel.take(card(0, []), card(1, None, lost=True), card(2, []), events=(event,))
        first, lost, third = panel.devices()
        assert (first["alarms"], third["alarms"]) == ([], [])
        gone, fault = lost["alarms"]
        assert gone["text"].endswith("can no longer reach it.")
        assert "Xid 79" in fault["text"]

    def test_a_failure_of_ours_leaves_the_panel_working(
        self, panel: Panel, data_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        panel.take(card(0, []))
        monkeypatch.setattr(panel.watch._map, "take", lambda gpus: 1 / 0)
        panel.take(card(0, []), seconds=2.0)
        assert len(panel.devices()) == 1


def test_an_unknown_name_or_identity_of_a_card_is_no_null(panel: Panel) -> None:
    panel.take(card(0, [], name=None, gpu_uuid=None))
    (device,) = panel.devices()
    assert (device["name"], device["gpu_uuid"]) == ("GPU", "0")


def test_a_forged_claim_of_proof_is_not_passed_on(panel: Panel) -> None:
    ours = panel.machine.kernel("a")
    claimed = {"guard": {"growth": {"state": "proven", "text": "trust me"}}}
    ours.live = replace(ours.live, header=claimed)
    assert panel.kernel(ours)["guard"]["growth"] is None
