"""Each of NVML's errors at each call that the GPU reader makes: it goes on, or it says one sentence and ends in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.collectors.gpu_calls import DRIVER_GONE, GPU_IS_LOST
from tests.rigs.nvml.every_error import CODES
from tests.rigs.nvml.library import environ
from tests.rigs.nvml.scenario import eight_gpus, mig

# What is unknown when the call fails; () where another call tells the same, or where it is no figure.
OF_A_CARD: dict[str, tuple[str, ...]] = {
    "nvmlDeviceGetHandleByIndex_v2": ("name", "memory_used_bytes", "processes"),
    "nvmlDeviceGetName": ("name",),
    "nvmlDeviceGetUUID": ("gpu_uuid",),
    "nvmlDeviceGetPciInfo_v3": ("bus_id",),
    "nvmlDeviceGetMemoryInfo_v2": ("memory_reserved_bytes",),
    "nvmlDeviceGetUtilizationRates": ("utilization_fraction",),
    "nvmlDeviceGetTemperature": (),
    "nvmlDeviceGetTemperatureThreshold": ("slowdown_celsius", "shutdown_celsius"),
    "nvmlDeviceGetPowerUsage": ("power_watts",),
    "nvmlDeviceGetEnforcedPowerLimit": ("power_limit_watts",),
    "nvmlDeviceGetClockInfo": ("sm_clock_hertz",),
    "nvmlDeviceGetMaxClockInfo": ("sm_clock_max_hertz",),
    "nvmlDeviceGetCurrentClocksEventReasons": (),
    "nvmlDeviceGetFieldValues": ("recovery_action",),
    "nvmlDeviceGetRetiredPagesPendingStatus": ("retired_pages_pending",),
    "nvmlDeviceGetComputeRunningProcesses_v3": (),
    "nvmlDeviceGetMigMode": ("mig_enabled",),
    "nvmlDeviceRegisterEvents": (),
}
# Calls that are made where a newer one is not there, with that one.
OLDER = {
    "nvmlDeviceGetMemoryInfo": ("nvmlDeviceGetMemoryInfo_v2", "memory_used_bytes"),
    "nvmlDeviceGetTemperatureV": ("nvmlDeviceGetTemperature", "temperature_celsius"),
    "nvmlDeviceGetCurrentClocksThrottleReasons": (
        "nvmlDeviceGetCurrentClocksEventReasons",
        "throttle_reasons",
    ),
    "nvmlDeviceGetComputeRunningProcesses_v2": (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "processes",
    ),
    "nvmlDeviceGetTotalEccErrors": ("nvmlDeviceGetFieldValues", "ecc_uncorrected_count"),
    "nvmlDeviceGetRemappedRows": ("nvmlDeviceGetFieldValues", "remapped_rows_pending"),
    "nvmlDeviceGetPcieReplayCounter": ("nvmlDeviceGetFieldValues", "pcie_replay_count"),
}
OF_THE_LIBRARY = (
    "nvmlSystemGetProcessName",
    "nvmlEventSetCreate",
    "nvmlEventSetWait_v2",
)
IN_THE_OTHER_THREAD = ("nvmlDeviceRegisterEvents", "nvmlEventSetCreate", "nvmlEventSetWait_v2")


def each_error(standin: Path, path: Path, call: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.rigs.nvml.every_error", path, call],
        env=os.environ | environ(standin, path),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["code"] for result in found] == list(CODES)
    return found


def ended_in_order(result: dict[str, Any]) -> bool:
    """Whether it said one sentence and no figures, and ended without a fault."""
    last = result["lines"][-1]
    said = last["state"] in ("none", "unavailable") and last["devices"] == []
    return said and result["exit"] == 0 and len(last["reason"]) > 10


@pytest.mark.parametrize("call", OF_A_CARD)
def test_at_a_call_for_one_card(standin: Path, tmp_path: Path, call: str) -> None:
    path = eight_gpus().save(tmp_path / "scenario")
    for result in each_error(standin, path, f"{call} card 5"):
        code, lines = result["code"], result["lines"]
        if code in DRIVER_GONE and call not in IN_THE_OTHER_THREAD:
            assert ended_in_order(result), result
            continue
        assert result["exit"] == 0, code
        assert [line["state"] for line in lines] == ["ok", "ok"], code
        for line in lines:
            assert len(line["devices"]) == 8
            sick, well = line["devices"][5], line["devices"][4]
            assert well["memory_used_bytes"] is not None
            assert well["name"] is not None
            assert len(well["processes"]) == 5
            assert sick["lost"] is (code == GPU_IS_LOST and call not in IN_THE_OTHER_THREAD), code
            assert [sick[key] for key in OF_A_CARD[call]] == [None] * len(OF_A_CARD[call]), code
            assert (sick["processes"] is None) == (sick["processes_reason"] is not None) or sick[
                "lost"
            ]


@pytest.mark.parametrize("call", OLDER)
def test_at_an_older_call_for_one_card(standin: Path, tmp_path: Path, call: str) -> None:
    newer, key = OLDER[call]
    scenario = eight_gpus()
    scenario.calls = [f"{newer} fail 13"]
    path = scenario.save(tmp_path / "scenario")
    for result in each_error(standin, path, f"{call} card 5"):
        if result["code"] in DRIVER_GONE:
            assert ended_in_order(result), result
            continue
        assert result["exit"] == 0
        for line in result["lines"]:
            assert line["devices"][4][key] is not None
            assert line["devices"][5][key] is None
            assert line["devices"][5]["lost"] is (result["code"] == GPU_IS_LOST)


@pytest.mark.parametrize(
    "call", ["nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"]
)
def test_at_a_call_for_instances(standin: Path, tmp_path: Path, call: str) -> None:
    path = mig().save(tmp_path / "scenario")
    for result in each_error(standin, path, call):
        if result["code"] in DRIVER_GONE:
            assert ended_in_order(result), result
            continue
        assert result["exit"] == 0
        for line in result["lines"]:
            assert [d["nvml_index"] for d in line["devices"]] == [0, 1]
            assert line["devices"][1]["memory_used_bytes"] == 0


@pytest.mark.parametrize("call", OF_THE_LIBRARY)
def test_at_a_call_for_no_card(standin: Path, tmp_path: Path, call: str) -> None:
    path = eight_gpus().save(tmp_path / "scenario")
    for result in each_error(standin, path, call):
        if result["code"] in DRIVER_GONE and call not in IN_THE_OTHER_THREAD:
            assert ended_in_order(result), result
            continue
        assert result["exit"] == 0
        assert [line["state"] for line in result["lines"]] == ["ok", "ok"]
        for line in result["lines"]:
            assert len(line["devices"]) == 8
            names = {p["name"] for d in line["devices"] for p in d["processes"]}
            assert names == ({None} if call == "nvmlSystemGetProcessName" else {"python3"})


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2"])
def test_at_a_call_without_which_nothing_can_be_read(
    standin: Path, tmp_path: Path, call: str
) -> None:
    path = eight_gpus().save(tmp_path / "scenario")
    for result in each_error(standin, path, call):
        assert len(result["lines"]) == 1
        assert ended_in_order(result), result


def test_a_driver_that_goes_away_is_said(standin: Path, tmp_path: Path) -> None:
    path = eight_gpus().save(tmp_path / "scenario")
    found = each_error(standin, path, "nvmlDeviceGetMemoryInfo_v2 after 8")
    by_code = {result["code"]: result["lines"] for result in found}
    assert [line["state"] for line in by_code[18]] == ["ok", "unavailable"]
    assert "restart the machine" in by_code[18][1]["reason"]
    assert [line["state"] for line in by_code[1]] == ["ok", "unavailable"]
    assert [line["state"] for line in by_code[999]] == ["ok", "ok"]
