"""Xid events: each told once, soon, with the card it happened to; without them everything else goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.nvml.reader import Line, Reader
from tests.rigs.nvml.scenario import Scenario, eight_gpus, mig
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

from .conftest import Read


def listening(reader: Reader, path: Path, cards: int) -> None:
    """Wait until the process has registered for the events of all its cards."""

    def registered(line: Line) -> bool:
        return path.read_text().count("nvmlEventSetWait_v2") > 0

    reader.until(registered)
    assert path.read_text().count("nvmlDeviceRegisterEvents") >= cards


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    found = eight_gpus()
    found.record = tmp_path / "calls"
    return found


def start(read: Read, scenario: Scenario) -> Reader:
    reader = read(scenario)
    assert scenario.record is not None
    listening(reader, scenario.record, len(scenario.cards))
    return reader


def events(lines: list[Line]) -> list[dict[str, Any]]:
    return [event for line in lines for event in line["events"]]


def test_each_is_told_once_with_its_card_and_time(read: Read, scenario: Scenario) -> None:
    scenario.xid(0, 31)  # before anybody listened: past
    reader = start(read, scenario)
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
    time.sleep(0.5)
    assert events(reader.rest()) == []


def test_they_do_not_wait_for_the_next_tick(read: Read, scenario: Scenario) -> None:
    reader = read(scenario, seconds=10 * DEADLINE_SECONDS)
    reader.line()
    record = scenario.record
    assert record is not None
    wait_until(lambda: "nvmlEventSetWait_v2" in record.read_text())
    scenario.xid(1, 48)
    reader.save()
    assert [event["xid"] for event in reader.line()["events"]] == [48]


def test_an_event_of_a_divided_card_is_the_card_s(read: Read, tmp_path: Path) -> None:
    scenario = mig()
    scenario.record = tmp_path / "calls"
    reader = start(read, scenario)
    scenario.xid(0, 94)
    reader.save()
    [event] = reader.until(lambda line: line["events"])["events"]
    assert (event["nvml_index"], event["bus_id"]) == (0, "0000:07:00.0")


@pytest.mark.parametrize("error", [3, 999])
def test_a_card_that_has_no_events_leaves_the_others_theirs(
    read: Read, scenario: Scenario, error: int
) -> None:
    scenario.calls = [f"nvmlDeviceRegisterEvents fail {error} card 2"]
    reader = start(read, scenario)
    scenario.xid(2, 79)
    scenario.xid(4, 43)
    reader.save()
    [event] = reader.until(lambda line: line["events"])["events"]
    assert (event["nvml_index"], event["xid"]) == (4, 43)


@pytest.mark.parametrize(
    "call",
    [
        "nvmlEventSetCreate fail 3",
        "nvmlDeviceRegisterEvents fail 4",
        "nvmlDeviceRegisterEvents fail 999",
        "nvmlEventSetWait_v2 fail 13",
        "nvmlEventSetWait_v2 fail 15",
    ],
)
def test_without_events_the_figures_go_on(read: Read, scenario: Scenario, call: str) -> None:
    scenario.calls = [call]
    reader = read(scenario)
    for _ in range(20):
        assert reader.line()["state"] == "ok"
    assert scenario.record is not None
    made = scenario.record.read_text()
    assert made.count("nvmlEventSetWait_v2") <= 3  # not at full speed


def test_a_wait_that_failed_is_taken_up_again(read: Read, scenario: Scenario) -> None:
    scenario.calls = ["nvmlEventSetWait_v2 fail 15"]
    reader = start(read, scenario)
    scenario.calls.clear()
    scenario.xid(7, 119)
    reader.save()
    [event] = reader.until(lambda line: line["events"])["events"]
    assert (event["nvml_index"], event["xid"]) == (7, 119)


def test_a_storm_is_told_in_few_lines(read: Read, scenario: Scenario) -> None:
    reader = start(read, scenario)
    reader.rest()
    for number in range(80):
        scenario.xid(number % 8, 13)
    reader.save()
    told: list[dict[str, Any]] = []

    def all_of_them(line: Line) -> bool:
        told.extend(line["events"])
        return len(told) >= 80

    reader.until(all_of_them)
    assert len(told) == 80


def test_a_card_that_is_lost_in_the_same_moment_is_named(read: Read, scenario: Scenario) -> None:
    reader = start(read, scenario)
    scenario.lose(5)
    scenario.xid(5, 79)
    reader.save()
    [event] = reader.until(lambda line: line["events"])["events"]
    assert (event["xid"], event["nvml_index"]) == (79, 5)
    assert event["gpu_uuid"] == scenario.cards[5].uuid
