"""What the panel is told of a kernel, in the cases that are hard to bring about."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.collectors.host import HostCollector
from jupyter_tfguard.diagnosis.seen_hang import RUNNING
from jupyter_tfguard.procfs import read_environ
from jupyter_tfguard.record.facts import Hang
from jupyter_tfguard.server.state import (
    KernelView,
    history,
    kernel_state,
    limit_ahead,
    number,
    other_kernel,
)
from jupyter_tfguard.server.tracked import guard_command
from jupyter_tfguard.watch.crash.child_kill import ReportedKill
from jupyter_tfguard.watch.history import COLUMNS, Rows
from jupyter_tfguard.watch.live.live import Live
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel

pytestmark = pytest.mark.quick

SAMPLES = Path(__file__).parents[1] / "wire"


@pytest.fixture
def monitored() -> Iterator[MonitoredKernel]:
    found = MonitoredKernel(os.getpid(), Kernel("k", "python3"), SharedGroups())
    host = HostCollector()
    assert found.sample(1, host.collect())
    host.close()
    yield found
    found.close()


def state(monitored: MonitoredKernel | None, **view: Any) -> dict[str, Any]:
    given = {"language": "python", "unwatched_reason": None} | view
    given = {"kernel": Kernel("k")} | given
    return kernel_state(KernelView(monitored=monitored, **given))


def test_it_has_the_shape_of_the_sample(monitored: MonitoredKernel) -> None:
    wanted = json.loads((SAMPLES / "status.json").read_text())["kernels"][0]
    found = state(monitored)
    assert set(found) == set(wanted)
    assert set(found["host"]) == set(wanted["host"])
    assert set(found["guard"]) == set(wanted["guard"])


def test_a_number_has_the_shape_of_the_sample(monitored: MonitoredKernel) -> None:
    wanted = json.loads((SAMPLES / "number.json").read_text())
    found = number(KernelView(Kernel("k"), "python", monitored, None))
    assert set(found) == set(wanted)
    assert set(found["host"]) == set(wanted["host"])
    unwatched = number(KernelView(Kernel("k"), None, None, "remote"))
    assert set(unwatched) == set(wanted)
    assert unwatched["watched"] is False


def test_a_limit_of_the_process_is_reported_as_in_the_sample(monitored: MonitoredKernel) -> None:
    wanted = json.loads((SAMPLES / "number_ulimit.json").read_text())["host"]
    monitored._shared = {"host.total_bytes": 64e9, "host.available_bytes": 50e9}
    monitored._ulimit = {
        "process.address_space_bytes": wanted["used_bytes"],
        "process.address_space_limit_bytes": wanted["limit"]["bytes"],
    }
    found = number(KernelView(Kernel("k"), "python", monitored, None))
    assert found["host"]["limit"] == wanted["limit"]
    assert found["host"]["used_bytes"] == wanted["used_bytes"]


def test_the_limit_ahead_is_reported_while_the_kernel_is_busy(monitored: MonitoredKernel) -> None:
    wanted = json.loads((SAMPLES / "tick.json").read_text())["kernel"]["host"]["forecast"]
    assert state(monitored)["host"]["forecast"] is None
    for second in range(40):
        held = (40 + second) * 1e9
        monitored._forecaster.add(monitored.since + 20 + second, held, held, 100e9)
    forecast = state(monitored)["host"]["forecast"]
    assert set(forecast) == set(wanted)
    assert forecast["bytes_per_second"] == pytest.approx(1e9)
    assert forecast["seconds_left"] == pytest.approx(22)
    monitored.is_busy = False
    assert state(monitored)["host"]["forecast"] is None


def held(monitored: MonitoredKernel, *own_bytes: float, used_bytes: float) -> KernelView:
    """A busy kernel of a container of 8 GB that held so much itself, one second after the other."""
    monitored._shared = {"cgroup.limit_bytes": 8e9, "cgroup.used_bytes": used_bytes}
    now = time.monotonic()
    for back, own in zip(range(len(own_bytes), 0, -1), own_bytes, strict=True):
        monitored.history.rows.add(now - back, (own, 0.0, 0.0, *[math.nan] * (len(COLUMNS) - 3)))
    return KernelView(
        Kernel("k", "python3", "pandas.ipynb"), "python", monitored, None, run_since=5.0
    )


def test_the_kernel_that_grows_is_named_where_several_share_a_limit(
    monitored: MonitoredKernel,
) -> None:
    wanted = json.loads((SAMPLES / "limits.json").read_text())["kernels"][1]
    monitored.history.rows = Rows(len(COLUMNS), 100, 120.0)
    found = limit_ahead(held(monitored, 2.0e9, 2.2e9, 2.4e9, used_bytes=7.5e9))
    assert found is not None
    assert set(found) == set(wanted)
    assert found["notebook_path"] == "pandas.ipynb"
    assert found["is_soon"] is False
    monitored.history.rows = Rows(len(COLUMNS), 100, 120.0)
    assert limit_ahead(held(monitored, 2.0e9, 2.01e9, 2.0e9, used_bytes=7.5e9)) is None


def test_nobody_is_warned_far_from_a_limit_or_of_an_idle_kernel(monitored: MonitoredKernel) -> None:
    monitored.history.rows = Rows(len(COLUMNS), 100, 120.0)
    far = held(monitored, 2.0e9, 2.5e9, used_bytes=6e9)
    assert limit_ahead(far) is None
    monitored._shared["cgroup.used_bytes"] = 7.9e9
    assert limit_ahead(far) is not None
    monitored.is_busy = False
    assert limit_ahead(far) is None
    assert limit_ahead(KernelView(Kernel("k"), None, None, "remote")) is None


def test_a_kernel_that_only_grew_earlier_is_not_named(monitored: MonitoredKernel) -> None:
    monitored.history.rows = Rows(len(COLUMNS), 200, 120.0)
    flat = [0.2e9, *[0.64e9] * 105]  # an import, then nothing
    assert limit_ahead(held(monitored, *flat, used_bytes=7.5e9)) is None
    monitored.history.rows = Rows(len(COLUMNS), 200, 120.0)
    slow = [0.2e9 + 2e6 * second for second in range(105)]
    assert limit_ahead(held(monitored, *slow, used_bytes=7.5e9)) is not None


@pytest.mark.parametrize("seconds_each", [0.3, 0.6, 1.0, 1.5, 2.0, 3.0])
def test_a_load_that_ends_at_two_fifths_of_the_limit_brings_no_warning(
    monitored: MonitoredKernel, seconds_each: float
) -> None:
    limit = 2.65e9
    view = held(monitored, used_bytes=0.0)
    monitored._shared["cgroup.limit_bytes"] = limit
    began = monitored.since + 20
    blank = [math.nan] * (len(COLUMNS) - 3)
    for tenth in range(int((40 * seconds_each + 30) * 10)):
        moment = began + tenth / 10
        own = 0.1e9 + 25e6 * min(40, int(tenth / 10 / seconds_each))
        monitored.history.rows.add(moment, (own, 0.0, 0.0, *blank))
        monitored._forecaster.add(moment, own, own, limit)
        monitored._shared["cgroup.used_bytes"] = own
        if tenth % 10 == 0:
            assert limit_ahead(view) is None, own / limit


def test_a_fast_rise_is_warned_of_below_three_fifths_when_as_much_was_added_as_is_left(
    monitored: MonitoredKernel,
) -> None:
    view = held(monitored, used_bytes=0.0)
    seen = []
    for second in range(60):
        own = 0.1e9 + 1.5e8 * second
        monitored.history.rows.add(
            monitored.since + 20 + second, (own, 0.0, 0.0, *[math.nan] * (len(COLUMNS) - 3))
        )
        monitored._forecaster.add(monitored.since + 20 + second, own, own, 8e9)
        monitored._shared["cgroup.used_bytes"] = own
        if limit_ahead(view) is not None:
            seen.append(own / 8e9)
    assert 0.5 <= seen[0] < 0.6


def test_a_limit_that_is_expected_within_minutes_is_soon(monitored: MonitoredKernel) -> None:
    view = held(monitored, used_bytes=5e9)
    for second in range(40):
        own = (40 + second) * 1e8
        monitored._forecaster.add(monitored.since + 20 + second, own, own, 8e9)
    found = limit_ahead(view)
    assert found is not None
    assert found["is_soon"] is True


def test_a_kernel_without_the_guard_is_reported_after_ten_seconds(
    monitored: MonitoredKernel,
) -> None:
    assert state(monitored, fix="a command")["guard"]["loaded"] is None
    monitored.since -= 11
    guard = state(monitored, fix="a command")["guard"]
    assert guard["loaded"] is False
    assert guard["text"] == (
        "The guard is not loaded in this kernel: it is not enabled there, it is turned off, or a script without `exec` starts the kernel."
    )
    assert guard["fix"] == "a command"


@pytest.mark.parametrize(
    ("python", "fix"),
    [
        ("/other/bin/python", "jupyter tfguard enable --kernel 'my env'"),
        (sys.executable, "%load_ext tfguard"),
        ("python", "%load_ext tfguard"),
    ],
)
def test_only_what_works_is_advised_for_a_kernel_without_the_guard(python: str, fix: str) -> None:
    argv = (python, "-m", "ipykernel_launcher", "-f", "{connection_file}")
    assert guard_command("my env", argv) == fix
    assert "enable" not in guard_command("my env", (*argv, "--config=/my.py"))


def test_a_kernel_with_an_unknown_specification_is_advised_too() -> None:
    assert guard_command(None, None) == "%pip install jupyter-tfguard"
    assert guard_command("k8", None) == "jupyter tfguard enable --kernel k8"


def test_a_kernel_that_is_no_ipykernel_gets_a_sentence_and_no_command(
    monitored: MonitoredKernel,
) -> None:
    monitored.since -= 11
    argv = ("/opt/conda/bin/xpython", "-f", "{connection_file}")
    guard = state(monitored, kernel=Kernel("k", kernel_name="xpython"), argv=argv)["guard"]
    assert (guard["loaded"], guard["fix"]) == (False, None)
    assert "xpython starts it" in guard["text"]


def test_a_guard_switched_off_by_the_environment_is_reported_at_once_and_by_name() -> None:
    environment = {**os.environ, "TFGUARD_DISABLE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE
    ) as process:
        while not read_environ(f"/proc/{process.pid}/environ"):
            time.sleep(0.01)
        monitored = MonitoredKernel(process.pid, Kernel("k", "python3"), SharedGroups())
        guard = state(monitored)["guard"]
        monitored.close()
        process.communicate(b"\n")
    assert (guard["loaded"], guard["fix"]) == (False, None)
    assert guard["text"] == "The guard is turned off in this kernel by TFGUARD_DISABLE."
    assert process.returncode == 0


def test_an_environment_that_read_empty_at_the_start_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[dict[str, str]] = [{}, {"TFGUARD_DISABLE": "1"}]
    monkeypatch.setattr("jupyter_tfguard.watch.monitored.read_environ", lambda path: told.pop(0))
    monitored = MonitoredKernel(os.getpid(), Kernel("k", "python3"), SharedGroups())
    assert monitored.is_switched_off is None
    monitored.poll()
    assert monitored.is_switched_off is True
    monitored.poll()  # and not asked again
    monitored.close()


def test_a_kernel_of_another_language_is_not_advised_to_install_python(
    monitored: MonitoredKernel,
) -> None:
    guard = state(monitored, language="R")["guard"]
    assert (guard["loaded"], guard["fix"]) == (False, None)
    assert "Python" in guard["text"]


def test_a_hang_names_the_worker_that_was_killed_in_the_same_run(
    monitored: MonitoredKernel,
) -> None:
    def worker(run_since: float | None) -> list[str] | None:
        view = KernelView(monitored.kernel, "python", monitored, None, run_since=run_since)
        hang = kernel_state(view)["hang"]
        assert hang.keys() == sample["hang"].keys()
        assert hang == number(view)["hang"]
        found: list[str] | None = hang["worker_killed"]
        return found

    kernels = json.loads((SAMPLES / "status.json").read_text())["kernels"]
    sample = next(kernel for kernel in kernels if kernel["hang"])
    monitored.hang = Hang(since=1060.0, noticed=1360.0, wait="lock", in_fit=True)
    assert worker(1000.0) is None
    monitored.reported_kill = ReportedKill(1050.0, ("Process 7 held 1.10 GiB",))
    assert worker(1000.0) == ["Process 7 held 1.10 GiB"]
    assert worker(1050.9) == ["Process 7 held 1.10 GiB"]  # reports have whole seconds
    assert worker(1052.0) is None  # of an earlier cell
    assert worker(None) is None
    monitored.hang = dataclasses.replace(monitored.hang, wait=RUNNING)
    assert worker(1000.0) is None  # it computes


def test_growth_is_absent_without_tensorflow_and_reported_with_it(
    monitored: MonitoredKernel,
) -> None:
    monitored.live = Live(header={"guard": {"growth": None, "problems": ["no ring"]}})
    assert state(monitored)["guard"] == {
        "loaded": True,
        "text": "guarding",
        "fix": None,
        "problems": ["no ring"],
        "growth": None,
        "stop": None,
    }
    monitored.live = Live(header={"guard": {"growth": {"state": "on", "text": "memory growth on"}}})
    assert state(monitored)["guard"]["growth"] == {"state": "on", "text": "memory growth on"}


def test_the_stop_is_shown_with_its_threshold_and_what_does_not_work(
    monitored: MonitoredKernel,
) -> None:
    stop = {"state": "on", "level": "soft", "stop_bytes": 32 << 20, "notes": ["Not built."]}
    monitored.live = Live(header={"guard": {"stop": stop}})
    del stop["level"]
    assert state(monitored)["guard"]["stop"] == stop
    forged = {"state": "off", "stop_bytes": -1, "notes": ["x" * 999, *range(99)]}
    monitored.live = Live(header={"guard": {"stop": forged}})
    found = state(monitored)["guard"]["stop"]
    assert (found["state"], found["stop_bytes"]) == ("off", None)
    assert found["notes"] == ["x" * 300, *"012345678"]


@pytest.mark.parametrize(
    "guard",
    [
        "no",
        None,
        {"growth": {"state": "<b>"}, "stop": {"state": "<b>"}},
        {"growth": {"state": []}, "stop": {"state": {}}},
        {"growth": [], "stop": "on"},
        {"problems": "x" * 9999},
    ],
)
def test_a_forged_header_gives_plain_values(monitored: MonitoredKernel, guard: object) -> None:
    monitored.live = Live(header={"guard": guard, "notebook_path": ["a"]})
    found = state(monitored)
    assert found["guard"]["growth"] is found["guard"]["stop"] is None
    assert found["notebook_path"] is None
    assert len(json.dumps(found)) < 2000


def test_the_path_of_the_header_helps_where_there_is_no_session(monitored: MonitoredKernel) -> None:
    monitored.live = Live(header={"notebook_path": "a/b.ipynb"})
    assert state(monitored)["notebook_path"] == "a/b.ipynb"


def test_old_numbers_are_unknown_and_not_repeated(monitored: MonitoredKernel) -> None:
    assert state(monitored)["host"]["rss_bytes"] > 10 << 20
    assert monitored._last is not None
    sequence, moment, when, rss = monitored._last
    monitored._last = (sequence, moment - 6, when, rss)
    host = state(monitored)["host"]
    assert host.pop("details") == []
    assert set(host.values()) == {None}


def test_the_use_of_a_group_leaves_out_the_file_cache(monitored: MonitoredKernel) -> None:
    values = {
        "cgroup.limit_bytes": 8e9,
        "cgroup.used_bytes": 7e9,
        "cgroup.reclaimable_bytes": 2e9,
        "host.total_bytes": 64e9,
        "host.available_bytes": 50e9,
    }
    monitored._shared = values
    host = state(monitored)["host"]
    assert host["limit"] == {"bytes": 8_000_000_000, "name": "container limit", "kind": "cgroup"}
    assert host["used_bytes"] == 5_000_000_000
    del values["cgroup.limit_bytes"]
    host = state(monitored)["host"]
    assert host["limit"] == {"bytes": 64_000_000_000, "name": "machine memory", "kind": "host"}
    assert host["used_bytes"] == 14_000_000_000


def test_the_chart_draws_the_number_that_is_shown(monitored: MonitoredKernel) -> None:
    view = KernelView(Kernel("k"), "python", monitored, None)
    row = history(view, "k")["rows"][-1]
    assert row[1] == pytest.approx(state(monitored)["host"]["used_bytes"], rel=1e-6)
    assert row[1] != pytest.approx(state(monitored)["host"]["rss_bytes"], rel=1e-6)


def test_an_unwatched_kernel_has_a_reason_and_no_numbers() -> None:
    found = state(None, unwatched_reason="remote kernel, not tracked here")
    assert found["watched"] is False
    assert found["unwatched_reason"] == "remote kernel, not tracked here"
    assert found["pid"] is None
    view = KernelView(Kernel("k"), None, None, "starting")
    assert other_kernel(view)["rss_bytes"] is None
    assert history(None, "gone")["rows"] == []
