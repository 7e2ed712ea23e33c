"""`jupyter tfguard replay`: a real server that plays a real recording, and what it says to what it cannot play."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.replay.recorded import read_recorded
from tests.cli.test_forget import die
from tests.conftest import without_pytest
from tests.replay.made import bundle

RECORDED = Path(__file__).parents[1] / "fixtures" / "replay" / "memory-limit.zip"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-like-it"], "There is no report with the id 'nothing-like-it'."),
        (["n" * 5000], "There is no report with the id"),
        (["gone.zip"], "There is no file or folder gone.zip."),
        ([__file__], "cannot be read as an exported report"),
        ([str(RECORDED), "--speed", "0"], "--speed takes a number from 0.1 to 100."),
        ([str(RECORDED), "--speed", "nan"], "--speed takes a number from 0.1 to 100."),
        ([str(RECORDED), "--at", "-1"], "--at takes a number of seconds, 0 or more."),
        ([str(RECORDED), "--at", "inf"], "--at takes a number of seconds, 0 or more."),
    ],
)
def test_what_cannot_be_played_is_said_in_a_sentence(
    data_folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["replay", *arguments]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


@pytest.mark.quick
def test_deaths_that_were_only_counted_have_no_recording(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = BundleStore(data_folder / "bundles")
    die(store, 12)
    [group] = store.groups.ids()
    assert main(["replay", group]) == 2
    assert "only counted" in capsys.readouterr().err


class Run:
    """The command, running."""

    def __init__(self, told: str, environment: dict[str, str]) -> None:
        call = [sys.executable, "-m", "jupyter_tfguard", "replay", told, "--json"]
        call += ["--at", "4", "--speed", "2"]
        self.process = subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.told: dict[str, Any] = json.loads(self.process.stdout.readline())
        address, _, self.token = self.told["address"].partition("?token=")
        self.url = address.partition("lab/tree/")[0]

    def get(self, path: str) -> Any:
        request = urllib.request.Request(f"{self.url}{path}")
        request.add_header("Authorization", f"token {self.token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def kernel(self) -> dict[str, Any]:
        [found] = self.get("tfguard/api/status")["kernels"]
        assert found["kernel_id"] == self.told["kernel_id"]
        return dict(found)


@pytest.fixture
def environment(data_folder: Path, tmp_path: Path) -> dict[str, str]:
    private = {"TFGUARD_DIR": str(data_folder), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    return without_pytest(os.environ) | private


@pytest.fixture
def run(environment: dict[str, str]) -> Iterator[Run]:
    made = Run(str(RECORDED), environment)
    yield made
    if made.process.poll() is None:
        made.process.terminate()
    made.process.communicate()


def test_a_replay_waits_for_a_page_and_ctrl_c_leaves_nothing(run: Run) -> None:
    kernel = run.kernel()
    assert not kernel["watched"]
    assert kernel["unwatched_reason"] == "The replay begins when a page looks."
    assert kernel["notebook_path"] == "train.ipynb"
    assert run.get("tfguard/api/crashes") == {"crashes": []}
    cells = run.get("api/contents/train.ipynb")["content"]["cells"]
    assert [cell["execution_count"] for cell in cells] == [1, 2, 3]
    assert all(cell["metadata"]["editable"] is False for cell in cells)
    family = psutil.Process(run.process.pid).children(recursive=True)
    assert len(family) >= 2  # server and kernel
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(30) in (0, 130)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []


def test_the_report_of_the_replay_is_made_anew_and_the_store_is_left_alone(
    run: Run, data_folder: Path
) -> None:
    """A page looks: the stream is opened, as the panel does."""
    from websocket import create_connection

    socket = create_connection(
        f"ws{run.url.removeprefix('http')}tfguard/api/stream",
        header={"Authorization": f"token {run.token}"},
    )
    watch = {"type": "watch", "kernel_id": run.told["kernel_id"], "rate_hertz": 2, "visible": True}
    socket.send(json.dumps(watch))
    numbers = []
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        message = json.loads(socket.recv())
        kernel = message.get("kernel") or {}
        if message["type"] == "tick" and kernel.get("watched"):
            assert kernel["guard"]["text"] == "replay, not live"
            numbers.append(kernel["host"]["rss_bytes"])
        if numbers and message["type"] == "tick" and not kernel.get("watched"):
            break
    socket.close()
    assert len(set(numbers)) > 1
    recorded = read_recorded(str(RECORDED), BundleStore(data_folder))["server"]
    column = recorded["columns"].index("process.rss_bytes")
    assert set(numbers) <= {row[column] for row in recorded["rows"]}
    while not (entries := run.get("tfguard/api/crashes")["crashes"]):
        assert time.monotonic() < ends
        time.sleep(0.2)
    [entry] = entries
    assert (entry["cause"], entry["confidence"]) == ("cgroup_oom", "certain")
    assert entry["kernel_id"] == run.told["kernel_id"]
    report = run.get(f"tfguard/api/crashes/{entry['id']}")
    assert report["left"]["metrics"]["rows"]
    assert not (data_folder / "bundles").exists()


@pytest.mark.quick
def test_it_is_taken_by_the_first_characters_of_its_id(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyter_tfguard.report.publish import publish

    kept = publish(bundle(), BundleStore(data_folder / "bundles"), TfGuard())
    seen = []
    monkeypatch.setattr("jupyter_tfguard.replay.run.run", lambda tape, **_: seen.append(tape) or 0)
    assert main(["replay", str(kept["id"])[:13]]) == 0
    assert [tape.bundle["id"] for tape in seen] == [kept["id"]]
