"""When a step is overdue, and what its kernel does meanwhile: by hand-made clocks, threads and stacks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_tfguard.record.stacks import Frame, feeding
from jupyter_tfguard.watch.hang import stalls
from jupyter_tfguard.watch.hang.stalls import Stall
from jupyter_tfguard.watch.live.live import FitPlace, Live, LiveReader, fit_place
from jupyter_tfguard.watch.monitored import MonitoredKernel

pytestmark = pytest.mark.quick

HANG_SECONDS, POLL_SECONDS, MAIN = 300.0, 10.0, 7
FIRST = FitPlace(1, 1, None, True)
LIB = "/opt/env/lib/python3.11/site-packages"
CELL = Frame("/tmp/ipykernel_7/1.py", 4, "batches")
STEP = [Frame(f"{LIB}/tensorflow/python/eager/execute.py", 53, "quick_execute"), CELL]
GENERATOR = [CELL, Frame(f"{LIB}/tensorflow/python/data/ops/from_generator_op.py", 198, "f")]


class Bench:
    """One kernel; its main thread and another use CPU time and wait as set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.main_fraction, self.fraction, self.switches_hertz = 0.0, 1.0, 5000.0
        self.kernel = SimpleNamespace(
            live=Live(place=FIRST),
            kernel=SimpleNamespace(runs_cell=lambda: True),
            identity=SimpleNamespace(pid=MAIN),
        )
        self._works = {MAIN: (0.0, 0), 8: (0.0, 0)}
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: 1.7e9 + self.now)
        monkeypatch.setattr(stalls, "time", clock)
        monkeypatch.setattr(stalls, "thread_works", lambda pid: dict(self._works))
        monkeypatch.setattr(stalls, "descendants", lambda pid: ())
        monkeypatch.setattr(
            stalls, "cpu_seconds", lambda pid: sum(cpu for cpu, _ in self._works.values())
        )
        self.stall = Stall(cast(MonitoredKernel, self.kernel), HANG_SECONDS)

    def at(self, steps_begun: int, **changed: Any) -> None:
        place = FitPlace(1, steps_begun, None, True)._replace(**changed)
        self.kernel.live = Live(place=place, training=self.kernel.live.training)
        self.poll()

    def poll(self, seconds: float = POLL_SECONDS, *, gpu_works: bool = False) -> bool:
        self.now += seconds
        for thread, fraction, hertz in (
            (MAIN, self.main_fraction, 1.0),
            (8, self.fraction, self.switches_hertz),
        ):
            cpu, waited = self._works[thread]
            self._works[thread] = cpu + fraction * seconds, waited + int(hertz * seconds)
        return self.stall.poll(gpu_works=gpu_works)

    def shown_after(self, stacks: dict[str, list[Frame]], limit: float = 4000.0) -> float | None:
        """Seconds until the notice; None if there was none."""
        began = self.now
        while self.now - began < limit:
            if self.poll() and self.stall.is_stall(stacks, "0x1"):
                return self.now - began
        return None


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(monkeypatch)
    made.poll()
    return made


def test_a_pipeline_that_yields_nothing_is_shown(bench: Bench) -> None:
    assert bench.shown_after({"0x1": STEP}) == pytest.approx(2 * HANG_SECONDS, abs=POLL_SECONDS)


def test_a_generator_that_spins_is_shown_whatever_its_threads_do(bench: Bench) -> None:
    bench.switches_hertz = 0.0
    assert bench.shown_after({"0x1": STEP, "0x2": GENERATOR}) == pytest.approx(
        2 * HANG_SECONDS, abs=POLL_SECONDS
    )


@pytest.mark.parametrize(
    ("main", "other", "hertz"), [(0.0, 1.0, 30.0), (1.0, 0.0, 5.0), (0.6, 0.7, 900.0)]
)
def test_a_first_step_that_compiles_or_traces_is_never_shown(
    bench: Bench, main: float, other: float, hertz: float
) -> None:
    bench.main_fraction, bench.fraction, bench.switches_hertz = main, other, hertz
    assert bench.shown_after({"0x1": STEP}) is None


def test_a_pipeline_counts_only_from_the_end_of_a_long_compilation(bench: Bench) -> None:
    bench.switches_hertz = 30.0
    for _ in range(100):
        assert not (bench.poll() and bench.stall.is_stall({"0x1": STEP}, "0x1"))
    bench.switches_hertz = 5000.0
    assert bench.shown_after({"0x1": STEP}) == pytest.approx(HANG_SECONDS, abs=2 * POLL_SECONDS)


@pytest.mark.parametrize(
    "change",
    [
        {"fraction": 0.05},  # waits, or polls with pauses
        {"live": Live(place=FIRST._replace(in_step=False, steps_begun=5))},  # between two steps
        {"live": Live(place=None)},  # no fit, a loop, or an older guard
    ],
    ids=str,
)
def test_a_kernel_that_waits_or_is_in_no_step_is_not_shown(
    bench: Bench, change: dict[str, Any]
) -> None:
    bench.fraction = change.get("fraction", 1.0)
    bench.kernel.live = change.get("live", bench.kernel.live)
    assert bench.shown_after({"0x1": STEP, "0x2": GENERATOR}) is None


def test_a_gpu_at_work_excuses(bench: Bench) -> None:
    assert not any(bench.poll(gpu_works=True) for _ in range(200))


@pytest.mark.parametrize(("longest", "allowed"), [(10.0, 300.0), (90.0, 900.0)])
def test_a_later_step_is_compared_with_those_before(
    bench: Bench, longest: float, allowed: float
) -> None:
    bench.at(2)
    for step in range(3, 6):
        bench.now += longest - POLL_SECONDS
        bench.at(step)
    assert bench.shown_after({"0x1": STEP}) == pytest.approx(allowed, abs=2 * POLL_SECONDS)


def test_a_slow_compilation_gives_later_ones_time(bench: Bench) -> None:
    for _ in range(60):
        bench.poll()
    bench.at(2)
    assert bench.shown_after({"0x1": STEP}) == pytest.approx(1220.0, abs=2 * POLL_SECONDS)


def test_steps_of_a_validation_are_progress_and_its_pipeline_can_stall(bench: Bench) -> None:
    bench.at(2)
    for step in range(100):
        bench.at(2, validation_step=step)
        assert not bench.poll()
    assert bench.shown_after({"0x1": STEP}) == pytest.approx(HANG_SECONDS, abs=2 * POLL_SECONDS)


def test_a_callback_of_the_user_is_no_step(bench: Bench) -> None:
    bench.at(2)
    callback = [
        CELL,
        Frame(f"{LIB}/keras/src/callbacks/callback_list.py", 90, "on_train_batch_end"),
    ]
    assert bench.shown_after({"0x1": callback}) is None


def test_only_the_users_own_code_feeds() -> None:
    inside = [Frame(f"{LIB}/tensorflow/python/framework/ops.py", 1, "op"), *GENERATOR]
    assert feeding({"0x1": STEP, "0x2": inside}) == inside
    assert feeding({"0x1": STEP, "0x2": GENERATOR[1:]}) is None


def test_the_place_of_a_fit_is_not_trusted(tmp_path: Path) -> None:
    good = {"active": True, "fit_id": 3, "steps_begun": 9, "validation_step": None, "in_step": True}
    assert fit_place(good) == FitPlace(3, 9, None, True)
    for bad in ({"in_step": None}, {"active": 1}, {"fit_id": "3"}, {"steps_begun": float("nan")}):
        assert fit_place(good | bad) is None
    assert LiveReader(tmp_path / "none").read().place is None
