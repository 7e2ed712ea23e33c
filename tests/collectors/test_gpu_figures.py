"""What the GPU reader prints of each card equals what the driver's library shows; what is not told is unknown."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.collectors.gpu_devices import KEYS
from tests.rigs.nvml.library import build
from tests.rigs.nvml.scenario import GIB, MIB, Card, Scenario, eight_gpus, mig, one_gpu

from .conftest import Read

FLAGS = {
    "remapped_rows_pending": "remapped_pending",
    "remapped_rows_failed": "remapped_failed",
    "retired_pages_pending": "retired_pending",
}
SAME = {
    "gpu_uuid": "uuid",
    "name": "name",
    "memory_total_bytes": "memory_total",
    "memory_used_bytes": "memory_used",
    "memory_reserved_bytes": "memory_reserved",
    "temperature_celsius": "temperature",
    "slowdown_celsius": "slowdown",
    "shutdown_celsius": "shutdown",
    "ecc_corrected_count": "ecc_corrected",
    "ecc_uncorrected_count": "ecc_uncorrected",
    "remapped_rows_corrected_count": "remapped_corrected",
    "remapped_rows_uncorrected_count": "remapped_uncorrected",
    "pcie_replay_count": "replay",
}
SCALED = {
    "utilization_fraction": ("utilization", 0.01),
    "power_watts": ("power", 0.001),
    "power_limit_watts": ("power_limit", 0.001),
    "sm_clock_hertz": ("sm_clock", 1e6),
    "sm_clock_max_hertz": ("sm_clock_max", 1e6),
}


def check(told: dict[str, Any], card: Card, scenario: Scenario) -> None:
    """Hold one device against what the scenario says of it."""
    assert tuple(told) == KEYS
    for key, name in SAME.items():
        assert told[key] == getattr(card, name), key
    for key, (name, factor) in SCALED.items():
        value = getattr(card, name)
        assert told[key] == (None if value is None else pytest.approx(value * factor)), key
    for key, name in FLAGS.items():
        value = getattr(card, name)
        assert told[key] is (None if value is None else bool(value)), key
    if card.bus is not None:
        assert told["bus_id"] == card.bus[4:].lower()
    total, used = card.memory_total or 0, card.memory_used or 0
    assert told["memory_free_bytes"] == total - used - (card.memory_reserved or 0)
    assert told["lost"] is False
    if card.mig == 1:
        assert told["processes"] is None
        assert "MIG" in told["processes_reason"]
    else:
        assert told["processes_reason"] is None
        assert [(p["pid"], p["used_bytes"]) for p in told["processes"]] == card.processes
        for process in told["processes"]:
            assert process["name"] == scenario.names[process["pid"]].rsplit("/", 1)[-1]


def shown(scenario: Scenario) -> list[tuple[int, int | None, Card]]:
    """Number of the card, number of the instance and what it is, in the order in which they are told."""
    found: list[tuple[int, int | None, Card]] = []
    for index, card in enumerate(scenario.cards):
        found.append((index, None, card))
        found += [(index, part, instance) for part, instance in enumerate(card.instances)]
    return found


@pytest.mark.parametrize("make", [one_gpu, eight_gpus, mig])
def test_every_figure_is_the_driver_s(read: Read, make: Any) -> None:
    scenario = make()
    devices = read(scenario).devices()
    cards = shown(scenario)
    assert [(d["nvml_index"], d["mig_index"]) for d in devices] == [(i, p) for i, p, _ in cards]
    for told, (_, _, card) in zip(devices, cards, strict=True):
        check(told, card, scenario)


def test_a_line_says_when_it_was_read_and_what_it_cost(read: Read) -> None:
    before = time.time()
    line = read(one_gpu()).line()
    assert before < line["time"] < time.time()
    assert 0 < line["cost_seconds"] < 1
    assert line["events"] == []
    assert line["reason"] is None


def test_what_changes_is_told_as_it_changes(read: Read) -> None:
    reader = read(eight_gpus())
    reader.line()
    card = reader.scenario.cards[3]
    card.memory_used = 70 * GIB
    card.temperature, card.power, card.sm_clock = 88, 699_000, 1200
    card.throttle, card.ecc_uncorrected, card.remapped_pending, card.recovery = 0x24, 2, 1, 1
    card.processes.append((4242, 30 * GIB))
    reader.scenario.names[4242] = "/usr/bin/python3"
    reader.save()
    told = reader.until(lambda line: line["devices"][3]["ecc_uncorrected_count"])["devices"]
    check(told[3], card, reader.scenario)
    assert told[3]["throttle_reasons"] == ["SwPowerCap", "SwThermalSlowdown"]
    assert told[3]["recovery_action"] == "GPU reset"
    for index in (0, 7):
        check(told[index], reader.scenario.cards[index], reader.scenario)


def test_what_is_not_supported_is_unknown_and_not_zero(read: Read) -> None:
    bare = Card(
        **{
            name: None
            for name in Card.__dataclass_fields__
            if name not in ("processes", "instances")
        }
    )  # type: ignore[arg-type]
    bare.name = "Only a name"
    [told] = read(Scenario([bare])).devices()
    known = {key: value for key, value in told.items() if value is not None}
    assert known == {"nvml_index": 0, "name": "Only a name", "lost": False, "processes": []}


def test_memory_in_use_is_without_the_reserved_in_both_forms_drivers_have(read: Read) -> None:
    cards = [Card(memory_used=20 * GIB, counts_reserved=form) for form in (0, 1)]
    told = read(Scenario(cards)).devices()
    assert [d["memory_used_bytes"] for d in told] == [20 * GIB] * 2
    assert [d["memory_reserved_bytes"] for d in told] == [512 * MIB] * 2


@pytest.mark.parametrize("refused", ["fail 25", "fail 13"])
def test_the_older_structure_of_memory_is_used_where_the_newer_is_refused(
    read: Read, refused: str
) -> None:
    scenario = one_gpu()
    scenario.calls = [f"nvmlDeviceGetMemoryInfo_v2 {refused}"]
    reader = read(scenario)
    for _ in range(3):
        [told] = reader.devices()
        card = scenario.cards[0]
        assert told["memory_used_bytes"] == (card.memory_used or 0) + (card.memory_reserved or 0)
        assert told["memory_reserved_bytes"] is None


@pytest.mark.parametrize(
    "call", ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperature"]
)
def test_a_call_under_its_other_name_is_found(read: Read, call: str) -> None:
    scenario = one_gpu()
    scenario.calls = [f"{call} fail 13"]
    check(read(scenario).devices()[0], scenario.cards[0], scenario)


def test_counters_come_from_the_old_functions_where_there_are_no_fields(read: Read) -> None:
    scenario = eight_gpus()
    card = scenario.cards[0]
    card.ecc_corrected, card.ecc_uncorrected, card.replay, card.retired_pending = 7, 1, 3, 1
    card.remapped_corrected, card.remapped_failed = 5, 1
    scenario.calls = ["nvmlDeviceGetFieldValues fail 3"]
    told = read(scenario).devices()[0]
    check(told, card, scenario)
    assert told["recovery_action"] is None  # there was no function for it


@pytest.mark.parametrize("year", [2021, 2020])
def test_an_old_library_tells_what_it_can(read: Read, tmp_path: Path, year: int) -> None:
    library = build(tmp_path, year)
    assert library is not None
    scenario = one_gpu()
    [told] = read(scenario, library).devices()
    card = scenario.cards[0]
    assert told["memory_used_bytes"] == (card.memory_used or 0) + (card.memory_reserved or 0)
    assert told["memory_reserved_bytes"] is None
    assert told["temperature_celsius"] == card.temperature
    assert told["throttle_reasons"] == ["SwPowerCap"]
    if year == 2021:
        assert told["processes"] == [{"pid": 4711, "used_bytes": 12 * GIB, "name": "python3.11"}]
    else:
        assert told["processes"] is None
        assert told["processes_reason"] == (
            "The NVIDIA driver is too old to tell the processes on this card."
        )


def test_a_slow_driver_does_not_keep_the_line_back(read: Read) -> None:
    scenario = eight_gpus()
    scenario.calls = ["nvmlDeviceGetPowerUsage slow 300"]
    reader = read(scenario)
    assert len(reader.devices()) == 8  # the first look is at all of them, however long it takes
    for card in scenario.cards:
        card.temperature = 77
    reader.save()
    changed: list[int] = []
    while not changed or changed[-1] < 8:
        told = reader.devices()
        changed.append(sum(device["temperature_celsius"] == 77 for device in told))
    assert 3 <= len(changed) <= 6  # some cards at each look, and none of them forgotten


class TestMig:
    def test_instances_come_and_go(self, read: Read) -> None:
        reader = read(mig())
        assert len(reader.devices()) == 5
        gone = reader.scenario.cards[0].instances.pop(0)
        gone.uuid = "MIG-new"
        reader.scenario.cards[0].instances.append(gone)
        reader.save()
        line = reader.until(lambda line: any(d["gpu_uuid"] == "MIG-new" for d in line["devices"]))
        for told, (_, _, card) in zip(line["devices"], shown(reader.scenario), strict=True):
            check(told, card, reader.scenario)

    def test_a_card_that_is_divided_while_it_is_watched_shows_its_instances(
        self, read: Read
    ) -> None:
        scenario = mig()
        scenario.cards[0].mig = 0
        reader = read(scenario)
        assert [d["mig_enabled"] for d in reader.devices()] == [False, False]
        scenario.cards[0].mig = 1
        reader.save()
        line = reader.until(lambda line: len(line["devices"]) == 5)
        assert line["devices"][0]["mig_enabled"] is True


class TestALostCard:
    def test_the_others_go_on_and_it_keeps_its_name(self, read: Read) -> None:
        reader = read(eight_gpus())
        reader.line()
        reader.scenario.lose(2)
        reader.save()
        devices = reader.until(lambda line: line["devices"][2]["lost"])["devices"]
        known = {key for key, value in devices[2].items() if value is not None}
        assert known == {"nvml_index", "gpu_uuid", "name", "bus_id", "lost"}
        for index in (0, 1, 3, 7):
            check(devices[index], reader.scenario.cards[index], reader.scenario)

    def test_it_may_come_back(self, read: Read) -> None:
        scenario = eight_gpus()
        scenario.lose(2)
        reader = read(scenario)
        assert reader.devices()[2]["lost"] is True
        scenario.calls.clear()
        reader.save()
        devices = reader.until(lambda line: not line["devices"][2]["lost"])["devices"]
        check(devices[2], scenario.cards[2], scenario)

    def test_its_instances_are_lost_with_it(self, read: Read) -> None:
        reader = read(mig())
        reader.line()
        reader.scenario.lose(0)
        reader.save()
        devices = reader.until(lambda line: line["devices"][0]["lost"])["devices"]
        assert [d["lost"] for d in devices] == [True, True, True, True, False]


def test_what_is_not_told_is_not_asked_for_at_every_tick(read: Read, tmp_path: Path) -> None:
    scenario = one_gpu()
    scenario.record = tmp_path / "calls"
    scenario.cards[0].power = None  # not supported
    scenario.calls = ["nvmlDeviceGetComputeRunningProcesses_v3 fail 4"]
    reader = read(scenario)
    for _ in range(25):
        reader.line()
    made = [line.split()[0] for line in scenario.record.read_text().splitlines()]
    assert made.count("nvmlDeviceGetPowerUsage") == 1
    assert made.count("nvmlDeviceGetComputeRunningProcesses_v3") == 1
    assert made.count("nvmlDeviceGetMemoryInfo_v2") >= 25
    assert made.count("nvmlDeviceGetName") == 1  # what does not change is read once
    assert made.count("nvmlInitWithFlags") == 1
    assert made.count("nvmlShutdown") == 0
    assert 4 <= made.count("nvmlDeviceGetFieldValues") <= 8  # two calls in every tenth tick


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no list of mapped files here")
def test_no_cuda_context_is_opened_and_nothing_is_set(read: Read, tmp_path: Path) -> None:
    scenario = mig()
    scenario.record = tmp_path / "calls"
    reader = read(scenario)
    for _ in range(12):
        reader.line()
    mapped = Path(f"/proc/{reader.process.pid}/maps").read_text()
    assert "libnvidia-ml" in mapped
    assert not [name for name in ("libcuda", "libcudart", "tensorflow", "numpy") if name in mapped]
    made = {line.split()[0] for line in scenario.record.read_text().splitlines()}
    asking = ("nvmlDeviceGet", "nvmlSystemGet")
    others = {name for name in made if not name.startswith(asking)}
    assert others == {
        "nvmlInitWithFlags",
        "nvmlEventSetCreate",
        "nvmlDeviceRegisterEvents",
        "nvmlEventSetWait_v2",
    }
