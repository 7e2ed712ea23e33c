"""The alarm about memory that grows from round to round: who gets it, what it names, what it costs nobody."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.kept_data import Kept
from jupyter_tfguard.kernel.cells import growth_alarm
from jupyter_tfguard.kernel.cells.growing import Growing
from jupyter_tfguard.kernel.cells.growth_alarm import GrowthAlarm
from jupyter_tfguard.kernel.cells.reachable import places_of
from jupyter_tfguard.record.events import Event, MemoryGrowth, event_of
from jupyter_tfguard.training.gpu_memory import DeviceMemory
from jupyter_tfguard.training.progress import FitProgress
from jupyter_tfguard.units import GIB, MIB
from tests.kernel.rig import GuardedKernel

np = pytest.importorskip("numpy")


class Made:
    """An alarm of a kernel that is played."""

    def __init__(self, epochs: int = 1000) -> None:
        self.namespace: dict[str, Any] = {}
        self.progress = FitProgress(1, "fit", epochs=epochs)
        self.events: list[dict[str, Any]] = []
        self.alarm = GrowthAlarm(self.namespace, self._emit, lambda: self.progress)
        self.cell(1)

    def _emit(self, event: Event) -> None:
        assert isinstance(event, MemoryGrowth)
        self.events.append(event.fields())

    def happened(self, kind: str, **fields: Any) -> None:
        """As if the kernel had emitted it."""
        event = event_of({"kind": kind} | fields)
        assert event is not None
        self.alarm.take(event)

    def cell(self, count: int, cell_id: str | None = "a", rss: int = GIB) -> None:
        self.happened("cell_start", execution_count=count, cell_id=cell_id, rss_bytes=rss)

    def fit(self, number: int, model: int = 1, rss: int = GIB) -> None:
        self.happened("fit_start", what="fit", fit_id=number, model_number=model, rss_bytes=rss)

    def sample(self, rss: float, limit: float = 8 * GIB, files: float = 0.0) -> None:
        self.alarm._due = 0.0
        held = {"cgroup.limit_bytes": limit, "cgroup.used_bytes": rss, "process.file_bytes": files}
        self.alarm.sampled({"process.rss_bytes": rss, "host.total_bytes": 64 * GIB, **held})

    def epoch(self, number: int, rss: float, files: float = 0.0) -> None:
        self.progress.epoch = number
        self.sample(rss + 500 * MIB, files=files)
        self.sample(rss, files=files)
        self.happened("epoch_end", epoch=number)
        self.sample(rss, files=files)

    @property
    def lines(self) -> list[str]:
        (event,) = self.events
        return list(event["lines"])


def test_epochs_that_grow_raise_one_alarm_with_rate_and_time_left() -> None:
    made = Made()
    made.fit(1)
    for epoch in range(1, 20):
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    assert "+100 MiB per epoch" in made.lines[0]
    assert "the limit of 8.00 GiB (container limit) in about" in made.lines[1]
    assert "Find out what the loop keeps" in made.lines[2]
    assert made.events[0]["execution_count"] == 1


def test_steps_of_a_training_loop_that_grow_raise_one_alarm() -> None:
    made = Made()
    made.progress = FitProgress(7, "loop", step=0)
    made.happened("fit_start", what="loop", fit_id=7)
    losses = made.namespace["losses"] = []
    for read in range(20):
        made.progress.step = read * 25
        losses += [
            np.empty(MIB // 8) for _ in range(25)
        ]  # pages that are not touched take no memory
        made.alarm._steps_due = 0.0
        made.sample(GIB + read * 25 * MIB, limit=4 * GIB)
    assert "+100 MiB per 100 steps" in made.lines[0]
    assert re.search(r"grew steadily over \d+ steps: ", made.lines[0])
    assert re.search(r"in about [\d,]+ steps", made.lines[1])
    assert "losses" in made.lines[2]
    assert re.search(r"[\d,]+ steps ago", made.lines[2])


def test_a_training_loop_that_keeps_nothing_raises_none() -> None:
    made = Made()
    made.progress = FitProgress(7, "loop", step=0)
    made.happened("fit_start", what="loop", fit_id=7)
    for read in range(40):
        made.progress.step = read * 250
        made.alarm._steps_due = 0.0
        made.sample(GIB + read % 2 * 300 * MIB)
        made.sample(GIB)
    assert made.events == []


@pytest.mark.parametrize(
    "rise",
    [
        lambda epoch: 0,
        lambda epoch: epoch % 4 * 300,  # a saw
        lambda epoch: 500 if epoch > 9 else 0,  # a jump
        lambda epoch: 800 * (1 - 0.6**epoch),  # it levels off
        lambda epoch: epoch,  # a MiB an epoch: 1000 epochs fit
    ],
)
def test_what_does_not_fill_the_memory_raises_none(rise: Any) -> None:
    made = Made()
    made.fit(1)
    for epoch in range(1, 30):
        made.epoch(epoch, GIB + rise(epoch) * MIB)
    assert made.events == []


def test_pages_of_files_are_no_growth() -> None:
    made = Made()
    made.fit(1)
    for epoch in range(1, 30):
        made.epoch(epoch, GIB + epoch * 100 * MIB, files=epoch * 100.0 * MIB)
    assert made.events == []


def test_a_cache_of_the_pipeline_that_fills_raises_none_until_it_is_full() -> None:
    made = Made()
    made.progress.kept_data = [Kept("cache() keeps all 5,000 elements in memory.", 2 * GIB)]
    made.fit(1)
    for epoch in range(1, 20):
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    assert made.events == []
    for epoch in range(20, 40):
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    assert "Find out what the loop keeps" in made.lines[2]


def test_a_cache_that_does_not_fit_is_named() -> None:
    made = Made()
    made.progress.kept_data = [Kept("cache() keeps all 5,000 elements in memory.", 20 * GIB)]
    made.fit(1)
    for epoch in range(1, 20):
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    assert made.lines[2:] == ["cache() keeps all 5,000 elements in memory."]


@pytest.mark.parametrize("limit", [30, 3000])
def test_a_bounded_deque_that_fills_raises_one_only_if_it_does_not_fit(limit: int) -> None:
    made = Made()
    made.namespace["recent"] = recent = deque[Any](maxlen=limit)
    made.fit(1)
    for epoch in range(1, 25):
        recent.append(np.zeros(100 * MIB, "u1"))
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    if limit == 30:
        assert made.events == []
    else:
        assert "recent has" in made.lines[2]


def test_an_array_that_is_made_longer_is_named() -> None:
    made = Made()
    made.fit(1)
    for epoch in range(1, 12):
        made.namespace["history"] = np.zeros(epoch * 100 * MIB, "u1")
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    assert made.lines[2].startswith("history is")


def test_a_slow_growth_counts_when_the_fit_would_reach_the_limit() -> None:
    made = Made(epochs=10_000)
    made.fit(1)
    for epoch in range(1, 80):
        made.epoch(epoch, 2 * GIB + epoch * MIB)
    assert "per epoch" in made.lines[0]


def test_a_list_of_a_callback_is_named_with_its_bytes() -> None:
    class Collect:
        def __init__(self) -> None:
            self.kept: list[Any] = []

    made, collect = Made(), Collect()
    made.progress.callbacks = (collect,)
    made.namespace["history"] = {"loss": []}
    made.namespace["small"] = small = []
    made.namespace["losses"] = losses = []
    made.fit(1)
    for epoch in range(1, 12):
        collect.kept += [np.zeros(50 * MIB, "u1"), np.zeros(50 * MIB, "u1")]
        small.append(np.zeros(3))
        losses.append(0.5)
        made.epoch(epoch, GIB + epoch * 100 * MIB)
    (holder,) = made.events[0]["holders"]
    assert holder["name"] == "Collect.kept"
    assert holder["text"].startswith("Collect.kept has ")
    assert holder["text"].endswith("10 more than 5 epochs ago, about 500 MiB.")


def test_models_of_a_loop_are_compared_fit_by_fit() -> None:
    made = Made()
    for fit in range(1, 12):
        made.fit(fit, fit, GIB + fit * 120 * MIB)
        made.sample(GIB)
    assert "per fit" in made.lines[0]
    assert "Run each fit in its own process" in made.lines[-1]
    assert "9 fits were of 9 different models" in made.lines[-1]


def test_not_every_one_of_many_short_rounds_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made, clock = Made(), [0.0]
    monkeypatch.setattr(growth_alarm.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(growth_alarm.time, "monotonic", lambda: 0.0)
    looked: list[int] = []

    def places() -> Iterator[tuple[str, Any]]:
        looked.append(1)
        clock[0] += 0.03
        return iter(())

    monkeypatch.setattr(made.alarm, "_places", places)
    made.fit(1)
    for epoch in range(1, 30):
        made.epoch(epoch, GIB)
    assert len(looked) == 4


def test_a_cell_that_is_run_again_and_again_is_compared_with_itself() -> None:
    made = Made()
    for run in range(2, 14):
        made.cell(run, "a", GIB + run * 150 * MIB)
        made.cell(run + 100, "b", GIB)
        made.sample(GIB)
    assert "per run" in made.lines[0]


def test_results_that_ipython_keeps_are_named_where_a_cell_is_run_again() -> None:
    made = Made()
    made.namespace["_oh"] = kept = {}
    for run in range(2, 14):
        kept[run] = np.zeros(150 * MIB, "u1")
        made.cell(run, "a", GIB + run * 150 * MIB)
        made.sample(GIB)
    assert made.lines[2].startswith("The results of ")
    assert "are kept in Out, about" in made.lines[2]


def test_gpu_memory_is_compared_too() -> None:
    made = Made()
    made.fit(1)
    for epoch in range(1, 12):
        made.alarm.sampled_gpu((DeviceMemory("GPU:0", epoch * 100 * MIB, 2 * GIB),))
        made.epoch(epoch, GIB)
    assert made.lines[0].startswith("GPU memory grew steadily over")
    assert "limit" not in made.lines[1]


def test_containers_that_grow_at_nearly_every_look_are_found() -> None:
    names: dict[str, Any] = {
        "rows": [], "table": {}, "queue": deque(), "steady": [1, 2], "_12": [], "emptied": []
    }  # fmt: skip
    growing = Growing()
    for number in range(10):
        names["rows"] += [number, number]
        names["table"][number] = number
        names["queue"].append(number)
        names["_12"].append(number)
        names["emptied"] = [number] * (number % 3)
        growing.poll(places_of(names))
    found = growing.grown(places_of(names), "epoch", 9)
    assert {(one.name, one.count, one.added_count) for one in found} == {
        ("rows", 20, 18), ("queue", 10, 9), ("table", 10, 9)
    }  # fmt: skip


def test_no_code_of_the_users_runs() -> None:
    class Loud(list[int]):
        def __len__(self) -> int:
            raise AssertionError

        def __getitem__(self, place: Any) -> Any:
            raise AssertionError

    class Proxy:
        @property
        def __class__(self) -> Any:
            raise AssertionError

    loud, growing = Loud([1]), Growing()
    places = {"loud": loud, "proxy": Proxy()}
    for _ in range(3):
        growing.poll(places_of(places, [("it", SimpleNamespace(a=Loud()))]))
        loud.append(1)
    assert [one.name for one in growing.grown(places_of(places), "epoch", 2)] == ["loud"]


def test_nothing_is_said_of_the_epochs_of_a_fit_that_is_over() -> None:
    made = Made()
    made.fit(1)
    made.alarm._due = float("inf")
    for epoch in range(1, 20):
        made.progress.epoch = epoch
        made.alarm.sampled({"process.rss_bytes": GIB + epoch * 100 * MIB})
        made.happened("epoch_end", epoch=epoch)
    made.happened("fit_end", fit_id=1)
    made.sample(3 * GIB)
    assert made.events == []


def test_a_fit_that_leaks_raises_the_alarm(kernel: GuardedKernel) -> None:
    pytest.importorskip("tensorflow")
    enough = kernel.folder / "enough"
    kernel.run(
        "import os, time, numpy as np, keras\n"
        "model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])\n"
        "model.compile(loss='mse')\n"
        "class Collect(keras.callbacks.Callback):\n"
        "    def __init__(self):\n        super().__init__()\n        self.kept = []\n"
        "    def on_epoch_end(self, epoch, logs=None):\n"
        "        self.kept.append(np.ones(40 << 20, 'u1'))\n        time.sleep(0.3)\n"
        f"        self.model.stop_training = epoch == 99 or os.path.exists({str(enough)!r})\n",
        timeout=120,
    )
    request = kernel.send(
        "model.fit(np.ones((8, 4)), np.ones(8), epochs=100_000, verbose=0, callbacks=[Collect()])"
    )
    (event,) = kernel.wait_for_event("memory_growth")
    enough.touch()
    ran = kernel.finish(request)
    assert ran.error is None
    assert ran.text == ""
    assert "Collect.kept has" in event["holders"][0]["text"]
    assert "per epoch" in event["lines"][0]
