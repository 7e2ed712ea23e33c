"""An alarm of the user's own that comes while the callback's code runs ends his fit as it would without us."""

from __future__ import annotations

import functools
import gc
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.training.attach import TrainingRecorder
from jupyter_tfguard.training.checkpoints import CheckpointWatch
from jupyter_tfguard.training.progress import FitProgress, ProgressBoard
from jupyter_tfguard.training.watch import FitWatch, make_callback_class
from tests.record.recording_rig import contents, make

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals"),
]
ALARMS = 300


class Base:
    """What we need of ``keras.callbacks.Callback``."""

    params: Mapping[str, Any] = {}


class Unbuilt:
    built = False


def out_of_time(number: int, frame: Any) -> None:
    raise TimeoutError  # an OSError, as those that the disk raises


def test_no_alarm_is_lost_in_the_callback_and_no_file_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "guard"))
    monkeypatch.setattr(shield, "_noted", {})
    recording = make(tmp_path)
    progress = FitProgress(1, "fit", parameter_count=1)
    board = ProgressBoard(recording.set_progress)
    board.begin(progress)
    watch = FitWatch(progress, board, recording.emit, Unbuilt(), CheckpointWatch((), since=0.0))
    callback = make_callback_class(Base)(watch)
    before = signal.signal(signal.SIGALRM, out_of_time)
    gc.disable()  # Python swallows what is raised in a callback of the garbage collector
    try:
        for _ in range(ALARMS):
            with pytest.raises(TimeoutError):
                train(callback, progress)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert shield.noted_in_this_process() == []
    recording.event("still_written")
    recording.set_progress({"step": -1})
    found = contents(recording)
    assert found.events[-1]["kind"] == "still_written"
    assert found.progress is not None
    assert found.progress["step"] == -1
    recording.close()


def train(callback: Any, progress: FitProgress) -> None:
    end = time.monotonic() + 5
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    batch = 0
    while time.monotonic() < end:
        progress.poll_due = 0.0  # each step is written, so that most alarms come while we write
        callback.on_train_batch_begin(batch)
        batch += 1
        if batch % 10 == 0:
            callback.on_epoch_end(batch, {"loss": 1.0})


def filtered(method: Callable[..., None]) -> Callable[..., None]:
    """Decorate as Keras does: the method is in the closure of a function that filters tracebacks."""

    @functools.wraps(method)
    def error_handler(*args: Any, **kwargs: Any) -> None:
        return method(*args, **kwargs)

    return error_handler


class Keras:
    """What the recorder needs of the module."""

    callbacks = SimpleNamespace(Callback=Base)

    class Model:
        """An alarm rings when its name is read, as it may at any moment."""

        rings = True
        fits = 0

        @property
        def name(self) -> str:
            if self.rings:
                signal.raise_signal(signal.SIGALRM)
            return "m"

        @filtered
        def fit(self, x: Any = None, callbacks: Any = None) -> None:
            type(self).fits += 1

        @filtered
        def evaluate(self) -> None:
            pass

        @filtered
        def predict(self) -> None:
            pass


def test_an_alarm_while_a_fit_is_being_reported_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "guard"))
    monkeypatch.setattr(shield, "_noted", {})
    board = ProgressBoard(lambda record: None)
    told: list[str] = []
    unknown = {"rss_bytes": None, "kept_bytes": None}
    recorder = TrainingRecorder(lambda event: told.append(event.kind), board, lambda: unknown)
    recorder.attach(cast(ModuleType, Keras))
    before = signal.signal(signal.SIGALRM, out_of_time)
    try:
        model = Keras.Model()
        with pytest.raises(TimeoutError):
            model.fit()
        model.rings = False
        model.fit()
    finally:
        signal.signal(signal.SIGALRM, before)
        recorder.detach()
    assert Keras.Model.fits == 1
    assert told == ["fit_start", "fit_end"]
    assert shield.noted_in_this_process() == []
