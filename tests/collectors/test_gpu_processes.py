"""Who computes on a card: the driver's list as it is, or none and why; never a number that was not told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.nvml.scenario import GIB, NOT_AVAILABLE, Scenario, holding, mig, one_gpu

from .conftest import Read

LIST = "nvmlDeviceGetComputeRunningProcesses_v3"


def with_processes(*processes: tuple[int, int]) -> Scenario:
    scenario = one_gpu()
    scenario.cards[0].processes = list(processes)
    return scenario


def test_memory_of_a_process_that_is_not_available_is_unknown(read: Read) -> None:
    scenario = one_gpu()
    holding(scenario.cards[0], [(4711, NOT_AVAILABLE), (4712, 2 * GIB)])
    [told] = read(scenario).devices()
    assert [(p["pid"], p["used_bytes"]) for p in told["processes"]] == [
        (4711, None),
        (4712, 2 * GIB),
    ]


def test_an_empty_list_is_a_list(read: Read) -> None:
    [told] = read(with_processes()).devices()
    assert told["processes"] == []
    assert told["processes_reason"] is None
    assert told[
        "memory_used_bytes"
    ]  # hidden pids, as in a container: whoever reads this may see that


@pytest.mark.parametrize("wrong", [(0, GIB), (4294967295, GIB), (2**22 + 1, GIB), (4712, 16 * GIB)])
def test_a_list_with_what_cannot_be_is_rejected_as_a_whole(
    read: Read, wrong: tuple[int, int]
) -> None:
    [told] = read(with_processes((4711, GIB), wrong)).devices()
    assert told["processes"] is None
    assert "535.104.05" in told["processes_reason"]
    assert told["memory_used_bytes"] == 12 * GIB + 3 * 1024**2


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ((f"{LIST} fail 4",), "does not let this user see"),
        ((f"{LIST} fail 3", f"{LIST[:-1]}2 fail 3"), "does not tell the processes"),
        ((f"{LIST} fail 13", f"{LIST[:-1]}2 fail 13"), "too old"),
        ((f"{LIST} fail 999",), "NVML error 999"),
        ((f"{LIST} race 1000",), "changes too fast"),
    ],
)
def test_where_they_cannot_be_seen_it_says_why(
    read: Read, calls: tuple[str, ...], says: str
) -> None:
    scenario = one_gpu()
    scenario.calls += calls
    reader = read(scenario)
    for _ in range(3):  # also where the call is not repeated
        [told] = reader.devices()
        assert told["processes"] is None
        assert says in told["processes_reason"]
        assert told["temperature_celsius"] == 71


def test_the_older_list_is_read_where_the_newer_is_not_there(read: Read) -> None:
    scenario = one_gpu()
    scenario.calls = [f"{LIST} fail 13"]
    reader = read(scenario)
    for _ in range(3):
        [told] = reader.devices()
        assert [p["pid"] for p in told["processes"]] == [4711]


def test_a_list_that_grows_while_it_is_read_is_read_again(read: Read) -> None:
    scenario = with_processes(*((4711 + n, n * 1024**2) for n in range(40)))
    scenario.calls = [f"{LIST} race 2"]
    [told] = read(scenario).devices()
    assert len(told["processes"]) == 40


def test_processes_of_an_instance_are_read_by_its_own_handle(read: Read) -> None:
    devices = read(mig()).devices()
    pids = {d["mig_index"]: [p["pid"] for p in d["processes"]] for d in devices[1:4]}
    assert pids == {0: [5001], 1: [5002, 5003], 2: []}
    assert devices[0]["processes"] is None
    assert devices[4]["processes"] == []


class TestNames:
    @pytest.mark.parametrize(
        ("told", "name"),
        [
            ("/opt/conda/bin/python3.11", "python3.11"),
            ("python", "python"),
            ("/usr/bin/python3 train.py --key=secret", "python3"),
            ("/usr/lib/xorg/", None),
        ],
    )
    def test_only_the_program_is_told(self, read: Read, told: str, name: str | None) -> None:
        scenario = one_gpu()
        scenario.names = {4711: told}
        [device] = read(scenario).devices()
        assert device["processes"][0]["name"] == name

    def test_a_name_that_is_not_known_or_not_text_is_unknown(self, read: Read) -> None:
        scenario = with_processes((4711, GIB), (4712, GIB))
        scenario.names = {4712: "\udcff\udcfe"}  # bytes that are no UTF-8
        [device] = read(scenario).devices()
        assert [p["name"] for p in device["processes"]] == [None, None]

    def test_each_is_asked_for_once_while_its_process_is_there(
        self, read: Read, tmp_path: Path
    ) -> None:
        scenario = one_gpu([(4711, GIB), (4712, GIB)])
        scenario.record = tmp_path / "calls"
        reader = read(scenario)
        for _ in range(5):
            reader.line()
        assert asked(scenario) == 2
        scenario.cards[0].processes.pop()
        reader.save()
        reader.until(lambda line: len(line["devices"][0]["processes"]) == 1)
        scenario.cards[0].processes.append((4712, GIB))  # another process with its number
        scenario.names[4712] = "/usr/bin/ruby"
        reader.save()
        line = reader.until(lambda line: len(line["devices"][0]["processes"]) == 2)
        assert line["devices"][0]["processes"][1]["name"] == "ruby"
        assert asked(scenario) == 3


def asked(scenario: Scenario) -> int:
    assert scenario.record is not None
    return scenario.record.read_text().count("nvmlSystemGetProcessName")
