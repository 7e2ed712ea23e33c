"""A tape is played as it was recorded: each number at its time, and what the kernel said when it said it."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.gpus import gpus_of as recorded_gpus
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.replay.gpus import gpus_of
from jupyter_tfguard.replay.player import Player
from jupyter_tfguard.replay.tape import tape_of
from jupyter_tfguard.server.state import KernelView, kernel_state
from jupyter_tfguard.units import GIB
from jupyter_tfguard.watch.witness import Kernel, Witness
from tests.replay.made import DIED, bundle, rss_at

pytestmark = pytest.mark.quick

NOW = 5000.0


def player(before_seconds: float = 60.0, speed: float = 1.0, **parts: object) -> Player:
    tape = tape_of(bundle(**parts))
    return Player(tape, Kernel("here"), speed, before_seconds, NOW)


def rss(of: Player) -> float | None:
    newest = of.witness.latest
    return None if newest is None else newest.values["process.rss_bytes"]


def test_each_sample_comes_at_its_time() -> None:
    played = player()
    played.advance(NOW + 0.5)
    assert rss(played) == rss_at(60)
    played.advance(NOW + 20.5)
    assert rss(played) == rss_at(40)
    assert not played.is_over
    played.advance(NOW + 60.0)
    assert rss(played) == rss_at(1)
    assert played.is_over


def test_what_lies_before_the_beginning_is_history() -> None:
    played = player(before_seconds=10)
    played.advance(NOW)
    assert rss(played) == rss_at(10)
    rows = played.witness.history.rows.read()
    assert len(rows) == 51
    assert rows[-1][0] - rows[0][0] == pytest.approx(50)  # type: ignore[operator]
    chart = played.witness.history.chart.read()
    assert {limit for _, _, limit in chart} == {2 * GIB}


def test_at_double_speed_the_time_between_samples_is_half() -> None:
    played = player(speed=2)
    played.advance(NOW + 15.25)
    assert rss(played) == rss_at(30)
    rows = played.witness.history.rows.read()
    assert rows[-1][0] - rows[-2][0] == pytest.approx(0.5)  # type: ignore[operator]


def test_time_that_passes_before_anybody_looks_is_not_played() -> None:
    played = player()
    played.hold(NOW + 300)
    played.advance(NOW + 300.5)
    assert rss(played) == rss_at(60)


def test_cells_and_fit_are_told_when_they_were() -> None:
    played = player()
    played.advance(NOW + 11)
    assert played.runs_cell
    assert played.witness.live.training is None
    played.advance(NOW + 13)
    assert not played.runs_cell
    played.advance(NOW + 31)
    training = played.witness.live.training
    assert training is not None
    assert (training["model_name"], training["epoch"], training["step"]) == ("cnn", 1, None)
    assert training["logs"] == {"loss": 0.7}
    played.advance(NOW + 59)
    training = played.witness.live.training
    assert training is not None
    assert (training["epoch"], training["step"], training["active"]) == (3, 17, True)
    assert [mark["label"] for mark in played.witness.live.marks] == ["[1]", "[2]", "[2] fit"]


def test_the_panels_state_is_that_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_tfguard.server.state.time.monotonic", lambda: NOW + 30)
    played = player()
    played.advance(NOW + 30)
    view = KernelView(played.witness.kernel, "busy", "python", played.witness, None)
    state = kernel_state(view, gpus_of(played))
    assert state["host"]["limit"]["name"] == "container limit"
    assert state["pid"] == 4711
    assert gpus_of(played).state()["reason"] == "No NVIDIA GPU here"


def test_a_steady_rise_to_the_limit_is_foreseen() -> None:
    played = player()
    for second in range(51):
        played.advance(NOW + second)
    found = played.witness.forecast()
    assert found is not None
    assert found.bytes_per_second == pytest.approx(10 << 20, rel=0.1)


def test_without_samples_there_are_no_numbers_and_the_end_comes() -> None:
    made = bundle()
    played = player(server=None, kernel=made["kernel"] | {"events": []})
    played.advance(NOW + 5)
    assert rss(played) is None
    assert not played.is_over
    played.advance(NOW + 10)
    assert played.is_over


def test_without_a_recording_of_its_own_the_kernel_says_nothing() -> None:
    played = player(kernel=None)
    played.advance(NOW + 59)
    assert rss(played) is not None
    assert played.witness.live.header is None
    assert played.witness.live.training is None


def test_a_kernel_that_stood_still_is_told_of_when_it_was_noticed() -> None:
    hang = {"since": DIED - 40, "noticed": DIED - 20, "wait": "lock", "in_fit": True}
    played = player(server=bundle()["server"] | {"hang": hang})
    played.advance(NOW + 35)
    assert played.witness.hang is None
    played.advance(NOW + 45)
    assert played.witness.hang is not None
    assert played.witness.hang.in_fit


def test_rows_of_the_gpu_follow_the_tape() -> None:
    card = {
        "nvml_index": 0,
        "gpu_uuid": "GPU-1",
        "name": "NVIDIA T4",
        "memory_total_bytes": 16 * GIB,
        "memory_used_bytes": 15 * GIB,
        "processes": [{"pid": 4711, "used_bytes": 14 * GIB, "kernel_id": "as-it-was"}],
        "columns": ["time", "own_bytes", "memory_used_bytes", "temperature_celsius"],
        "rows": [[DIED - 40, 4 * GIB, 5 * GIB, 50], [DIED - 10, 14 * GIB, 15 * GIB, 60]],
    }
    assert recorded_gpus([card], DIED)[0].name == "NVIDIA T4"
    played = player(server=bundle()["server"] | {"gpus": [card]})
    played.advance(NOW + 30)
    [told] = gpus_of(played).state("here")["devices"]
    assert (told["memory_used_bytes"], told["temperature_celsius"]) == (5 * GIB, 50)
    [holder] = told["holders"]
    assert holder["is_this"]
    assert holder["used_bytes"] == 4 * GIB
    played.advance(NOW + 55)
    [told] = gpus_of(played).state("here")["devices"]
    assert told["memory_used_bytes"] == 15 * GIB


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("train.ipynb", "train.ipynb"),
        ("lessons/one/train.ipynb", "lessons/one/train.ipynb"),
        ("/home/ann/work/train.ipynb", "train.ipynb"),
        ("../../up.ipynb", "up.ipynb"),
        ("a/../../up.ipynb", "up.ipynb"),
        ("C:\\\\temp\\\\x.ipynb", "Ctempx.ipynb"),
        ("a//b.ipynb", "b.ipynb"),
        ("<b>.ipynb", "b.ipynb"),
        ("..", "notebook.ipynb"),
        ("", "notebook.ipynb"),
        (None, "notebook.ipynb"),
    ],
)
def test_a_notebook_stands_below_the_servers_folder_wherever_it_stood(
    recorded: str | None, shown: str
) -> None:
    identity = bundle()["identity"] | {"notebook_path": recorded}
    assert tape_of(bundle(identity=identity)).notebook == shown


@pytest.mark.parametrize("forged", [7, "x", [], {"columns": 5, "rows": 5}, [[None]]])
def test_a_forged_recording_plays_without_an_error(forged: object) -> None:
    kernel = {"header": forged, "events": forged, "progress": forged, "gpu_memory": forged}
    server = {"columns": forged, "rows": forged, "gpus": forged, "hang": forged, "died": DIED}
    for parts in ({"kernel": kernel}, {"server": server}, {"kernel": forged, "server": forged}):
        played = player(**parts)
        for second in range(0, 130, 10):
            played.advance(NOW + second)
        view = KernelView(played.witness.kernel, "busy", "python", played.witness, None)
        kernel_state(view, gpus_of(played))
        assert played.is_over


def test_a_recorded_witness_has_all_that_is_read_of_one() -> None:
    class Bare(Witness):
        latest = None

        def binding_limit(self) -> None:
            return None

    bare = Bare(ProcessIdentity(1, 0), Kernel("here"), NOW)
    assert vars(bare).keys() <= vars(player().witness).keys()
