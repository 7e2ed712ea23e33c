"""Training loops without ``fit``: found by the counters of their optimizers, never from a number that something else changed."""

from __future__ import annotations

import gc
import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.record.events import Event
from jupyter_tfguard.training import loops as loops_module
from jupyter_tfguard.training.iterations import count_of
from jupyter_tfguard.training.loops import SHOWN_SECONDS, LoopReader
from jupyter_tfguard.training.progress import FitProgress, ProgressBoard
from tests.kernel.rig import GuardedKernel
from tests.training.fit_rig import Fitted


class Counter:
    """A counter in memory, as on the torch backend."""

    device = SimpleNamespace(type="cpu")

    def __init__(self) -> None:
        self.number = 0

    def item(self) -> int:
        return self.number

    def __int__(self) -> int:
        return self.number


class GpuCounter(Counter):
    device = SimpleNamespace(type="cuda")

    def __int__(self) -> int:
        raise AssertionError("a copy from the GPU")


class Keras:
    """What is needed of Keras; each test has its own classes."""

    def __init__(self) -> None:
        class BaseOptimizer:
            def __init__(self, counter: type[Counter] = Counter) -> None:
                self._iterations = counter()
                self.is_built = False

            def build(self, variables: Any) -> None:
                self.is_built = True

        class Optimizer(BaseOptimizer):
            def build(self, variables: Any) -> None:
                super().build(variables)

            def apply(self) -> None:
                if not self.is_built:
                    self.build([])
                self._iterations.number += 1

        class SGD(Optimizer):
            pass

        class Adam(Optimizer):
            pass

        self.optimizers = SimpleNamespace(Optimizer=Optimizer, SGD=SGD, Adam=Adam)
        self.base = BaseOptimizer


class Rig:
    """A reader with a clock that is moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(loops_module.time, "monotonic", lambda: self.now)
        self.events: list[dict[str, Any]] = []
        self.written: list[dict[str, Any]] = []
        self.keras: Any = Keras()
        self.original = self.keras.base.build
        self.board = ProgressBoard(self.written.append)
        self.ids = itertools.count(1)
        self.reader = LoopReader(
            self.emit, self.board, self.ids, lambda: {"rss_bytes": 5, "kept_bytes": 5}
        )
        self.reader.attach(self.keras)

    def emit(self, event: Event) -> None:
        self.events.append({"kind": event.kind} | event.fields())

    def tick(self, seconds: float = SHOWN_SECONDS) -> None:
        self.now += seconds
        self.reader.tick()
        self.board.flush()

    def optimizer(self, name: str = "Adam", **how: Any) -> Any:
        return getattr(self.keras.optimizers, name)(**how)

    def steps(self, optimizer: Any, count: int) -> None:
        for _ in range(count):
            optimizer.apply()

    @property
    def loop(self) -> FitProgress | None:
        current = self.board.current
        return current if current is not None and current.is_loop else None


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


@pytest.mark.quick
def test_a_loop_begins_with_its_steps_and_ends_with_its_cell(rig: Rig) -> None:
    rig.reader.cell_begins()
    adam = rig.optimizer()
    rig.steps(adam, 1)
    rig.tick()
    assert rig.loop is None
    rig.steps(adam, 1)
    rig.tick()
    assert rig.loop is not None
    assert (rig.loop.step, rig.loop.optimizer, rig.loop.active) == (2, "Adam", True)
    rig.steps(adam, 98)
    rig.tick()
    rig.steps(adam, 100)
    rig.tick()
    assert rig.written[-1]["step"] == 200
    rig.steps(adam, 7)
    rig.reader.cell_ends(ValueError())
    kinds = [(e["kind"], e.get("what"), e.get("error")) for e in rig.events]
    assert kinds == [("fit_start", "loop", None), ("fit_end", None, "ValueError")]
    last = rig.written[-1]
    assert (last["step"], last["active"], last["steps"], last["logs"]) == (207, False, None, {})


@pytest.mark.quick
def test_the_steps_per_second_are_those_of_the_last_seconds(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.reader.cell_begins()
    adam = rig.optimizer()
    for _ in range(8):
        rig.steps(adam, 50)
        rig.tick()
    assert rig.written[-1]["steps_per_second"] == 25.0


@pytest.mark.quick
def test_a_restored_counter_is_no_loop(rig: Rig) -> None:
    rig.reader.cell_begins()
    adam = rig.optimizer()
    adam.build([])
    rig.tick()
    adam._iterations.number = 5000
    for _ in range(5):
        rig.tick()
    assert rig.loop is None
    rig.steps(adam, 40)
    rig.tick()
    assert rig.loop is not None
    assert rig.loop.step == 5040


@pytest.mark.quick
def test_steps_of_a_fit_are_not_those_of_a_loop(rig: Rig) -> None:
    rig.reader.cell_begins()
    adam = rig.optimizer()
    for number in range(10):  # each shorter than the time between two reads
        fit = FitProgress(100 + number, "fit")
        rig.board.begin(fit)
        rig.steps(adam, 30)
        rig.board.end(fit)
        rig.tick()
    rig.reader.cell_ends(None)
    rig.steps(adam, 30)  # a fit whose end was not seen
    rig.reader.cell_begins()
    rig.tick()
    rig.tick()
    assert rig.events == []


@pytest.mark.quick
def test_evaluate_in_a_loop_is_shown_while_it_runs(rig: Rig) -> None:
    rig.reader.cell_begins()
    adam = rig.optimizer()
    for _ in range(3):
        rig.steps(adam, 10)
        rig.tick()
    assert rig.loop is not None
    evaluation = FitProgress(next(rig.ids), "evaluate")
    rig.board.begin(evaluation)
    assert rig.board.current is evaluation
    rig.board.end(evaluation)
    assert rig.loop is not None
    assert rig.written[-1]["what"] == "loop"
    rig.reader.cell_ends(None)
    assert rig.loop is not None
    assert not rig.loop.active


@pytest.mark.quick
def test_a_fit_ends_the_loop(rig: Rig) -> None:
    rig.reader.cell_begins()
    adam = rig.optimizer()
    for _ in range(3):
        rig.steps(adam, 10)
        rig.tick()
    rig.board.begin(fit := FitProgress(next(rig.ids), "fit"))
    rig.tick()
    assert [e["kind"] for e in rig.events] == ["fit_start", "fit_end"]
    assert rig.board.current is fit


@pytest.mark.quick
def test_of_two_optimizers_the_faster_is_shown(rig: Rig) -> None:
    rig.reader.cell_begins()
    slow, fast = rig.optimizer("SGD"), rig.optimizer("Adam")
    for _ in range(6):
        rig.steps(slow, 2)
        rig.steps(fast, 10)
        rig.tick()
    assert rig.loop is not None
    assert (rig.loop.optimizer, rig.loop.step) == ("Adam", 60)
    assert rig.written[-1]["steps_per_second"] == 5.0


@pytest.mark.quick
def test_one_of_many_optimizers_is_found(rig: Rig) -> None:
    idle = [
        rig.optimizer("SGD") for _ in range(30)
    ]  # as those that wrap another for mixed precision
    adam = rig.optimizer()
    for one in (*idle[:15], adam, *idle[15:]):
        one.build([])
    rig.reader.cell_begins()
    for _ in range(12):
        rig.steps(adam, 20)
        rig.tick()
    assert rig.loop is not None
    assert rig.loop.optimizer == "Adam"
    assert rig.loop.step == adam._iterations.number


@pytest.mark.quick
def test_a_counter_on_a_gpu_is_not_read(rig: Rig) -> None:
    rig.reader.cell_begins()
    built = rig.optimizer(counter=GpuCounter)
    built.build([])  # as a loaded model does
    rig.tick()
    assert rig.loop is None
    adam = rig.optimizer(counter=GpuCounter)
    rig.steps(adam, 5)
    rig.tick()
    assert rig.loop is not None
    assert (rig.loop.step, rig.loop.optimizer) == (None, "Adam")
    rig.reader.cell_ends(None)
    assert rig.written[-1]["step"] is None


@pytest.mark.quick
def test_a_deleted_optimizer_is_forgotten(rig: Rig) -> None:
    rig.reader.cell_begins()
    for _ in range(100):
        rig.optimizer().build([])
    gc.collect()
    assert len(rig.reader._followed) <= 1
    kept = [rig.optimizer() for _ in range(100)]
    for one in kept:
        one.build([])
    assert len(rig.reader._followed) == 50
    rig.tick()


@pytest.mark.quick
def test_keras_is_as_before_once_the_guard_is_gone(rig: Rig) -> None:
    rig.reader.attach(rig.keras)  # twice
    assert rig.keras.base.build.__wrapped__ is rig.original
    rig.reader.detach()
    assert rig.keras.base.build is rig.original
    rig.reader.cell_begins()
    adam = rig.optimizer()
    for _ in range(4):
        rig.steps(adam, 1)
        rig.tick()
    assert rig.events == []


@pytest.mark.quick
def test_a_value_that_a_device_still_computes_is_not_waited_for() -> None:
    class Computed(Counter):
        ready = taken = False

        def devices(self) -> list[Any]:
            return [SimpleNamespace(platform="cpu")]

        def is_deleted(self) -> bool:
            return self.taken

        def is_ready(self) -> bool:
            return self.ready

    optimizer = SimpleNamespace(_iterations=SimpleNamespace(_value=Computed()))
    assert count_of(optimizer) is None
    optimizer._iterations._value.ready = True
    assert count_of(optimizer) == 0
    optimizer._iterations._value.taken = True
    assert count_of(optimizer) is None


# --- the real Keras

_SEEN = """
from jupyter_tfguard.kernel import current as _now
def loop():
    found = _now.current().libraries.progress
    return found if found is not None and found.is_loop and found.active else None
"""
_TAPE = """
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.MeanSquaredError()
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""


def _end(looped: Fitted) -> dict[str, Any]:
    assert looped.ran.error is None, looped.ran
    start, end = looped.one("fit_start"), looped.one("fit_end")
    assert (start["what"], start["fit_id"]) == ("loop", end["fit_id"])
    assert (looped.progress["what"], looped.progress["active"]) == ("loop", False)
    return looped.progress | {"error": end["error"]}


def test_a_loop_with_a_gradient_tape_is_followed(keras_kernel: GuardedKernel) -> None:
    code = _SEEN + _TAPE + "while loop() is None: step()\nfor _ in range(5): step()\n"
    found = _end(Fitted(keras_kernel, code + "print(optimizer.iterations.numpy())"))
    assert found["optimizer"] == "Adam"
    assert found["error"] is None


def test_an_epoch_that_is_one_call_is_followed(keras_kernel: GuardedKernel) -> None:
    # The steps are seen while the main thread is in native code.
    code = """
goes_on = tf.Variable(True)
@tf.function
def epoch():
    while goes_on:
        step()
import threading
def end_when_seen():
    while (seen := loop()) is None or seen.step is None: time.sleep(0.01)
    print(seen.step > 0); goes_on.assign(False)
import time
waits = threading.Thread(target=end_when_seen); waits.start()
epoch(); waits.join(); made = int(optimizer.iterations.numpy())
"""
    looped = Fitted(keras_kernel, _SEEN + _TAPE + code)
    assert looped.ran.stdout.strip() == "True"
    made = keras_kernel.run("print(made)").stdout
    assert _end(looped)["step"] == int(made)


def test_batches_trained_one_by_one_are_followed(keras_kernel: GuardedKernel) -> None:
    code = "other = make()\nwhile loop() is None: other.train_on_batch(x, y)\nraise KeyError('x')"
    looped = Fitted(keras_kernel, _SEEN + code)
    assert looped.one("fit_end")["error"] == "KeyError"
    assert looped.progress["optimizer"] == "Adam"


def test_a_distributed_counter_is_read(keras_kernel: GuardedKernel) -> None:
    code = """
with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    spread = make()
while loop() is None: spread.train_on_batch(x, y)
del spread
"""
    assert _end(Fitted(keras_kernel, _SEEN + code))["step"] > 0


def test_a_fit_is_not_followed_twice(keras_kernel: GuardedKernel) -> None:
    code = "for _ in range(3): model.fit(x, y, epochs=2, verbose=0);"
    fits = Fitted(keras_kernel, code)
    assert {e["what"] for e in fits.all("fit_start")} == {"fit"}
