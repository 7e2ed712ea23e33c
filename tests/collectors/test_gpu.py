"""What the GPU reader prints of each card equals what the driver's library shows; what the driver does not give is unknown."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.collectors.gpu_cards import DRIVER_GONE, GPU_IS_LOST, IDENTITY, KEYS
from tests.rigs.nvml.reader import Line, Reader
from tests.rigs.nvml.scenario import (
    GIB,
    NOT_AVAILABLE,
    Card,
    Scenario,
    eight_gpus,
    holding,
    mig,
    one_gpu,
)
from tests.rigs.waiting import wait_until

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
    "temperature_celsius": "temperature",
    "slowdown_celsius": "slowdown",
    "shutdown_celsius": "shutdown",
    "ecc_uncorrected_count": "ecc_uncorrected",
    "remapped_rows_uncorrected_count": "remapped_uncorrected",
}
SCALED = {
    "utilization_fraction": ("utilization", 0.01),
    "power_watts": ("power", 0.001),
    "power_limit_watts": ("power_limit", 0.001),
}
PROCESSES = "nvmlDeviceGetComputeRunningProcesses_v3"


def check(told: dict[str, Any], card: Card, scenario: Scenario) -> None:
    """Compare one device with what the scenario says of it."""
    assert set(told) == set(KEYS)
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
        names = {pid: Path(path).name for pid, path in scenario.names.items()}
        assert told["processes"] == [
            {"pid": pid, "used_bytes": used, "name": names[pid]} for pid, used in card.processes
        ]


def shown(scenario: Scenario) -> list[tuple[int, int | None, Card]]:
    """Number of the card, number of the instance and what it is, in the order in which they are printed."""
    found: list[tuple[int, int | None, Card]] = []
    for index, card in enumerate(scenario.cards):
        found.append((index, None, card))
        found += [(index, part, instance) for part, instance in enumerate(card.instances)]
    return found


@pytest.mark.parametrize("make", [one_gpu, eight_gpus, mig])
def test_every_figure_is_the_drivers(read: Read, make: Any) -> None:
    scenario = make()
    before = time.time()
    line = read(scenario).line()
    assert before < line["time"] < time.time()
    assert line["cost_seconds"] > 0
    cards = shown(scenario)
    devices = line["devices"]
    assert [(d["nvml_index"], d["mig_index"]) for d in devices] == [(i, p) for i, p, _ in cards]
    for told, (_, _, card) in zip(devices, cards, strict=True):
        check(told, card, scenario)


def test_what_changes_is_printed_as_it_changes(read: Read) -> None:
    reader = read(eight_gpus())
    reader.line()
    card = reader.scenario.cards[3]
    card.memory_used = 70 * GIB
    card.temperature, card.power = 88, 699_000
    card.throttle, card.ecc_uncorrected, card.remapped_pending = 0x24, 2, 1
    card.processes.append((4242, 30 * GIB))
    reader.scenario.names[4242] = "/usr/bin/python3"
    reader.save()
    told = reader.until(lambda line: line["devices"][3]["ecc_uncorrected_count"])["devices"]
    check(told[3], card, reader.scenario)
    assert told[3]["throttle_reasons"] == ["SwPowerCap", "SwThermalSlowdown"]
    for index in (0, 7):
        check(told[index], reader.scenario.cards[index], reader.scenario)


def test_what_is_not_supported_is_unknown_and_not_zero(read: Read) -> None:
    names = set(Card.__dataclass_fields__) - {"processes", "instances"}
    bare = Card(**dict.fromkeys(names))  # type: ignore[arg-type]
    bare.name = "Only a name"
    [told] = read(Scenario([bare])).devices()
    known = {key: value for key, value in told.items() if value is not None}
    assert known == {"nvml_index": 0, "name": "Only a name", "lost": False, "processes": []}


def test_memory_in_use_is_without_the_reserved_in_both_forms_drivers_have(read: Read) -> None:
    cards = [Card(memory_used=20 * GIB, counts_reserved=form) for form in (0, 1)]
    told = read(Scenario(cards)).devices()
    assert [d["memory_used_bytes"] for d in told] == [20 * GIB] * 2


@pytest.mark.parametrize(
    ("call", "keys"),
    [
        ("nvmlDeviceGetHandleByIndex_v2", ("name", "memory_used_bytes", "processes")),
        ("nvmlDeviceGetUUID", ("gpu_uuid",)),
        ("nvmlDeviceGetMemoryInfo_v2", ("memory_total_bytes", "memory_used_bytes")),
        ("nvmlDeviceGetTemperature", ("temperature_celsius",)),
        ("nvmlDeviceGetFieldValues", ("ecc_uncorrected_count", "remapped_rows_failed")),
        (PROCESSES, ("processes",)),
        ("nvmlDeviceRegisterEvents", ()),
    ],
)
@pytest.mark.parametrize("code", [3, 13, GPU_IS_LOST, 999])
def test_an_error_of_one_card_leaves_the_others_as_they_are(
    read: Read, call: str, keys: tuple[str, ...], code: int
) -> None:
    scenario = eight_gpus()
    scenario.calls = [f"{call} fail {code} card 5"]
    devices = read(scenario).devices()
    assert [devices[5][key] for key in keys] == [None] * len(keys)
    assert devices[5]["lost"] is (code == GPU_IS_LOST and bool(keys))
    check(devices[4], scenario.cards[4], scenario)


@pytest.mark.parametrize("code", sorted(DRIVER_GONE))
def test_a_driver_that_goes_away_ends_the_reader_with_a_reason(read: Read, code: int) -> None:
    scenario = eight_gpus()
    scenario.calls = [f"nvmlDeviceGetMemoryInfo_v2 fail {code} after 8"]
    reader = read(scenario)
    assert reader.line()["state"] == "ok"
    last = reader.line()
    assert (last["state"], last["devices"]) == ("unavailable", [])
    assert ("Restart the machine" in last["reason"]) is (code == 18)
    with pytest.raises(EOFError, match="ended with 0"):
        reader.line()


class TestProcesses:
    def test_memory_of_a_process_that_is_not_available_is_unknown(self, read: Read) -> None:
        scenario = one_gpu()
        holding(scenario.cards[0], [(4711, NOT_AVAILABLE), (4712, 2 * GIB)])
        [told] = read(scenario).devices()
        sizes = [(p["pid"], p["used_bytes"]) for p in told["processes"]]
        assert sizes == [(4711, None), (4712, 2 * GIB)]

    @pytest.mark.parametrize(
        ("code", "says"),
        [(4, "does not let this user see"), (3, "does not list"), (999, "NVML error 999")],
    )
    def test_where_they_cannot_be_seen_it_says_why(self, read: Read, code: int, says: str) -> None:
        scenario = one_gpu()
        scenario.calls = [f"{PROCESSES} fail {code}"]
        [told] = read(scenario).devices()
        assert told["processes"] is None
        assert says in told["processes_reason"]
        assert told["temperature_celsius"] == 71

    @pytest.mark.parametrize(
        ("told", "name"),
        [
            ("/usr/bin/python3 train.py --key=secret", "python3"),
            ("/usr/lib/xorg/", None),
            ("\udcff\udcfe", None),  # bytes that are no UTF-8
        ],
    )
    def test_only_the_programs_name_is_printed(
        self, read: Read, told: str, name: str | None
    ) -> None:
        scenario = one_gpu()
        scenario.names = {4711: told}
        [device] = read(scenario).devices()
        assert device["processes"][0]["name"] == name


def test_mig_instances_come_and_go(read: Read) -> None:
    reader = read(mig())
    assert len(reader.devices()) == 5
    gone = reader.scenario.cards[0].instances.pop(0)
    gone.uuid = "MIG-new"
    reader.scenario.cards[0].instances.append(gone)
    reader.save()
    line = reader.until(lambda line: any(d["gpu_uuid"] == "MIG-new" for d in line["devices"]))
    for told, (_, _, card) in zip(line["devices"], shown(reader.scenario), strict=True):
        check(told, card, reader.scenario)


class TestALostCard:
    def test_the_others_stay_and_it_keeps_its_name_until_it_is_back(self, read: Read) -> None:
        reader = read(eight_gpus())
        reader.line()
        reader.scenario.lose(2)
        reader.save()
        devices = reader.until(lambda line: line["devices"][2]["lost"])["devices"]
        known = {key for key, value in devices[2].items() if value is not None}
        assert known == {*IDENTITY, "lost"} - {"mig_index"}
        for index in (0, 1, 3, 7):
            check(devices[index], reader.scenario.cards[index], reader.scenario)
        reader.scenario.calls.clear()
        reader.save()
        devices = reader.until(lambda line: not line["devices"][2]["lost"])["devices"]
        check(devices[2], reader.scenario.cards[2], reader.scenario)

    def test_its_instances_are_lost_with_it(self, read: Read) -> None:
        reader = read(mig())
        reader.line()
        reader.scenario.lose(0)
        reader.save()
        devices = reader.until(lambda line: line["devices"][0]["lost"])["devices"]
        assert [d["lost"] for d in devices] == [True, True, True, True, False]


class TestEvents:
    def start(self, read: Read, scenario: Scenario, path: Path) -> Reader:
        """A reader that has registered for the events of all cards."""
        scenario.record = path
        reader = read(scenario)
        reader.line()
        wait_until(lambda: "nvmlEventSetWait_v2" in path.read_text())
        return reader

    def test_each_is_printed_once_with_its_card_and_time(self, read: Read, tmp_path: Path) -> None:
        scenario = eight_gpus()
        scenario.xid(0, 31)  # before anybody listened: past
        reader = self.start(read, scenario, tmp_path / "calls")
        before = time.time()
        scenario.xid(3, 79)
        scenario.xid(6, 13)
        reader.save()
        told: list[dict[str, Any]] = []

        def both(line: Line) -> bool:
            told.extend(line["events"])
            return len(told) >= 2

        reader.until(both)
        assert [(e["xid"], e["nvml_index"], e["bus_id"], e["gpu_uuid"]) for e in told] == [
            (79, 3, "0000:4c:00.0", scenario.cards[3].uuid),
            (13, 6, "0000:7f:00.0", scenario.cards[6].uuid),
        ]
        assert all(before < event["time"] < time.time() for event in told)
        assert [reader.line()["events"] for _ in range(5)] == [[]] * 5

    def test_a_card_that_has_no_events_leaves_the_others_theirs(
        self, read: Read, tmp_path: Path
    ) -> None:
        scenario = eight_gpus()
        scenario.calls = ["nvmlDeviceRegisterEvents fail 3 card 2"]
        reader = self.start(read, scenario, tmp_path / "calls")
        scenario.xid(2, 79)
        scenario.xid(4, 43)
        reader.save()
        [event] = reader.until(lambda line: line["events"])["events"]
        assert (event["nvml_index"], event["xid"]) == (4, 43)

    @pytest.mark.parametrize("call", ["nvmlEventSetCreate fail 3", "nvmlEventSetWait_v2 fail 15"])
    def test_without_them_the_figures_go_on(self, read: Read, tmp_path: Path, call: str) -> None:
        scenario = eight_gpus()
        scenario.calls, scenario.record = [call], tmp_path / "calls"
        reader = read(scenario)
        for _ in range(20):
            assert reader.line()["state"] == "ok"
        # Not at full speed, and taken up again where it was a passing error.
        assert scenario.record.read_text().count("nvmlEventSetWait_v2") < 100


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
    calls = [line.split()[0] for line in scenario.record.read_text().splitlines()]
    assert calls.count("nvmlInitWithFlags") == 1
    asking = ("nvmlDeviceGet", "nvmlSystemGet")
    others = {name for name in calls if not name.startswith(asking)}
    assert others == {
        "nvmlInitWithFlags",
        "nvmlEventSetCreate",
        "nvmlDeviceRegisterEvents",
        "nvmlEventSetWait_v2",
    }
