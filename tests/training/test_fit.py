"""Real fits of the real Keras in a real kernel, followed without user code."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel, Ran

SETUP = """
import keras, numpy as np, tensorflow as tf
x = np.random.rand(96, 10).astype("float32")
y = np.random.rand(96, 1).astype("float32")
def make(**how):
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(4), keras.layers.Dense(1)], name="tiny")
    model.compile("adam", "mse", **how)
    return model
class Counts(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.epochs = self.batches = 0
    def on_epoch_end(self, epoch, logs=None): self.epochs += 1
    def on_train_batch_end(self, batch, logs=None): self.batches += 1
model = make()
"""
UNTOUCHED = """
from tensorflow.python.eager import context
assert context._context is None or context._context._context_handle is None
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras imported and a small model made."""
    kernel = GuardedKernel(tmp_path_factory.mktemp("fit")).start()
    imported = kernel.run(
        "import tensorflow as tf\n%tfguard\n%load_ext tfguard\n" + UNTOUCHED, timeout=180
    )
    assert imported.error is None, imported
    made = kernel.run(SETUP, timeout=180)
    assert made.error is None, made
    yield kernel
    kernel.close()


# Each test begins with the whole allowance of events.
UNLIMITED = """
from jupyter_tfguard.kernel import startup as _startup
_startup.current()._training._allowed = 50.0
"""


class Fitted:
    """The events of the last run, and what the cell printed."""

    def __init__(self, kernel: GuardedKernel, code: str) -> None:
        kernel.run(UNLIMITED)
        before = len(kernel.recording().events)
        self.ran: Ran = kernel.run(code, timeout=180)
        recorded = kernel.recording()
        self.events = recorded.events[before:]
        self.progress: dict[str, Any] = recorded.progress or {}
        assert kernel.problems() == ""

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        found = self.all(kind)
        assert len(found) == 1, (kind, self.events, self.ran)
        return found[0]


def test_imports_are_recorded_with_versions_and_growth(keras_kernel: GuardedKernel) -> None:
    recorded = keras_kernel.recording()
    imports = [e for e in recorded.events if e["kind"] == "import"]
    # TensorFlow imports Keras within itself.
    assert [e["module"] for e in imports] == ["keras", "tensorflow"]
    versions = recorded.header["versions"]
    assert {e["module"]: e["version"] for e in imports} == {
        k: versions[k] for k in ("keras", "tensorflow")
    }
    growth = next(e for e in recorded.events if e["kind"] == "growth")
    assert growth["state"] in ("on", "no_gpu")
    assert recorded.header["guard"]["growth"] == {"state": growth["state"], "text": growth["text"]}


def test_a_fit_is_followed_from_start_to_end(keras_kernel: GuardedKernel) -> None:
    fit = Fitted(
        keras_kernel,
        "h = model.fit(x, y, epochs=3, batch_size=16, verbose=0); print(h.history['loss'])",
    )
    start = fit.one("fit_start")
    assert start["what"] == "fit"
    assert start["model_name"] == "tiny"
    assert start["parameter_count"] == 49
    assert start["optimizer"] == "Adam"
    assert (start["batch_size"], start["batch_shape"], start["batch_dtype"]) == (
        16,
        [16, 10],
        "float32",
    )
    assert (start["epochs"], start["steps"]) == (3, None)
    assert start["rss_bytes"] > 1e8
    assert fit.one("fit_ready")["steps"] == 6
    ends = fit.all("epoch_end")
    assert [e["epoch"] for e in ends] == [1, 2, 3]
    assert [e["logs"]["loss"] for e in ends] == pytest.approx(eval(fit.ran.stdout))
    assert all(e["seconds"] > 0 for e in ends)
    end = fit.one("fit_end")
    assert (end["ok"], end["error"], end["fit_id"]) == (True, None, start["fit_id"])
    assert fit.progress["active"] is False
    assert (fit.progress["epoch"], fit.progress["step"]) == (3, 6)
    assert (fit.progress["epochs"], fit.progress["steps"]) == (3, 6)
    assert fit.progress["logs"].keys() == {"loss"}
    assert fit.progress["ended"] >= fit.progress["started"]


def test_validation_within_a_fit_is_part_of_it(keras_kernel: GuardedKernel) -> None:
    code = "model.fit(x, y, epochs=2, batch_size=16, validation_data=(x, y), validation_batch_size=8, verbose=0);"
    fit = Fitted(keras_kernel, code)
    assert len(fit.all("fit_start")) == 1
    assert fit.all("epoch_end")[0]["logs"].keys() == {"loss", "val_loss"}
    assert (fit.progress["epoch"], fit.progress["step"]) == (2, 6)


@pytest.mark.parametrize(
    ("what", "code"),
    [("evaluate", "model.evaluate(x, y, verbose=0)"), ("predict", "model.predict(x, verbose=0)")],
)
def test_the_other_methods_are_followed(keras_kernel: GuardedKernel, what: str, code: str) -> None:
    run = Fitted(keras_kernel, f"out = {code}; print(np.shape(out))")
    start = run.one("fit_start")
    assert start["what"] == what
    assert (start["batch_size"], start["batch_shape"]) == (32, [32, 10])
    assert run.one("fit_end")["ok"] is True
    assert (run.progress["what"], run.progress["step"], run.progress["steps"]) == (what, 3, 3)
    assert run.ran.stdout.strip() == {"evaluate": "()", "predict": "(96, 1)"}[what]


@pytest.mark.parametrize(
    ("callbacks", "batches"),
    [
        ("None", 0),
        ("[mine]", 12),
        ("(mine,)", 12),
        ("mine", 12),
        ("[]", 0),
        (
            "keras.callbacks.CallbackList([mine], add_history=True, model=model, epochs=2, steps=6)",
            12,
        ),
    ],
)
def test_callbacks_in_every_form_work_as_ever(
    keras_kernel: GuardedKernel, callbacks: str, batches: int
) -> None:
    fit = Fitted(
        keras_kernel,
        f"mine = Counts(); given = {callbacks}\n"
        "h = model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=given)\n"
        "inner = getattr(given, 'callbacks', given)\n"
        "names = [type(c).__name__ for c in inner] if isinstance(inner, (list, tuple)) else []\n"
        "print(mine.batches, type(h).__name__, [n for n in names if 'TfGuard' in n])",
    )
    assert fit.ran.stdout == f"{batches} History []\n"
    assert len(fit.all("epoch_end")) == 2
    assert (fit.progress["epoch"], fit.progress["step"]) == (2, 6)


def test_callbacks_given_by_position(keras_kernel: GuardedKernel) -> None:
    fit = Fitted(
        keras_kernel,
        "mine = Counts(); model.fit(x, y, 16, 2, 0, [mine], validation_split=0.5); print(mine.epochs, mine.batches)",
    )
    assert fit.ran.stdout == "2 6\n"
    assert [e["epoch"] for e in fit.all("epoch_end")] == [1, 2]
    assert fit.one("fit_start")["batch_size"] == 16


def test_a_data_set_tells_its_batch(keras_kernel: GuardedKernel) -> None:
    code = "data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(9).batch(24).map(lambda a, b: (a, b)).prefetch(2)\n"
    fit = Fitted(keras_kernel, code + "model.fit(data, verbose=0);")
    start = fit.one("fit_start")
    assert (start["batch_size"], start["batch_shape"], start["batch_dtype"]) == (
        24,
        [24, 10],
        "float32",
    )
    assert (fit.progress["step"], fit.progress["steps"]) == (4, 4)


def test_a_generator_and_a_sequence_are_followed(keras_kernel: GuardedKernel) -> None:
    code = "def batches():\n    while True: yield x[:8], y[:8]\nmodel.fit(batches(), steps_per_epoch=5, epochs=2, verbose=0);"
    fit = Fitted(keras_kernel, code)
    assert (fit.one("fit_start")["batch_size"], fit.one("fit_start")["steps"]) == (None, 5)
    assert (fit.progress["epoch"], fit.progress["step"]) == (2, 5)
    code = (
        "class Data(keras.utils.PyDataset):\n"
        "    def __init__(self): super().__init__(); self.batch_size = 12\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return x[:12], y[:12]\n"
        "model.fit(Data(), verbose=0);"
    )
    fit = Fitted(keras_kernel, code)
    assert fit.one("fit_start")["batch_size"] == 12
    assert fit.progress["steps"] == 4


def test_an_exception_of_the_users_passes_unchanged(keras_kernel: GuardedKernel) -> None:
    code = """
class Mine(Exception): pass
class Fails(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 2: raise error
error = Mine("my own")
try:
    model.fit(x, y, batch_size=16, verbose=0, callbacks=[Fails()])
except Exception as caught:
    print(caught is error, caught.args, caught.__cause__, caught.__context__)
"""
    fit = Fitted(keras_kernel, code)
    assert fit.ran.stdout == "True ('my own',) None None\n"
    end = fit.one("fit_end")
    assert (end["ok"], end["error"]) == (False, "Mine")
    assert fit.progress["step"] == 3
    # The next one is recorded again.
    assert len(Fitted(keras_kernel, "model.fit(x, y, verbose=0);").all("fit_start")) == 1


def test_an_interrupt_passes(keras_kernel: GuardedKernel) -> None:
    code = """
class Interrupts(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None): raise KeyboardInterrupt
model.fit(x, y, verbose=0, callbacks=[Interrupts()])
"""
    fit = Fitted(keras_kernel, code)
    assert fit.ran.error == "KeyboardInterrupt"
    assert fit.one("fit_end")["error"] == "KeyboardInterrupt"


def test_wrong_arguments_are_answered_by_keras(keras_kernel: GuardedKernel) -> None:
    fit = Fitted(keras_kernel, "model.fit(x, y, epoch=3)")
    assert fit.ran.error == "TypeError"
    assert "unexpected keyword argument 'epoch'" in fit.ran.traceback
    assert fit.all("fit_start") == []
    fit = Fitted(keras_kernel, "model.fit(x, y[:3], verbose=0)")
    assert fit.ran.error == "ValueError"
    assert fit.one("fit_end")["error"] == "ValueError"


def test_our_frames_are_hidden_in_tracebacks(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run("model.fit(x, y[:3], verbose=0)")
    assert "ValueError" in ran.traceback
    assert "attach.py" not in ran.traceback


def test_methods_keep_their_names_signatures_and_words(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "import inspect\n"
        "for name in ('fit', 'evaluate', 'predict'):\n"
        "    ours = getattr(keras.Model, name); theirs = ours.__wrapped__\n"
        "    print(ours.__name__, 'tfguard' in theirs.__code__.co_filename, ours.__doc__ == theirs.__doc__,\n"
        "          inspect.signature(ours) == inspect.signature(theirs), 'callbacks' in inspect.signature(ours).parameters)"
    )
    assert ran.stdout.splitlines() == [
        f"{name} False True True True" for name in ("fit", "evaluate", "predict")
    ]


def test_a_subclass_with_a_fit_of_its_own_is_followed_once(keras_kernel: GuardedKernel) -> None:
    code = """
class Own(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.dense = keras.layers.Dense(1)
    def call(self, inputs): return self.dense(inputs)
    def fit(self, *args, **kwargs): return super().fit(*args, **kwargs)
own = Own(); own.compile("sgd", "mse"); own.fit(x, y, epochs=1, batch_size=32, verbose=0);
"""
    fit = Fitted(keras_kernel, code)
    start = fit.one("fit_start")
    assert (start["model_name"], start["optimizer"], start["parameter_count"]) == (
        "own",
        "SGD",
        None,
    )
    # Its weights are there after the first step.
    assert [e["parameter_count"] for e in fit.all("fit_ready") if "parameter_count" in e] == [11]


def test_a_predict_from_within_a_callback_is_part_of_the_fit(keras_kernel: GuardedKernel) -> None:
    code = """
class Predicts(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None): other.predict(x, verbose=0)
other = make()
model.fit(x, y, epochs=2, verbose=0, callbacks=[Predicts()]);
"""
    fit = Fitted(keras_kernel, code)
    assert fit.one("fit_start")["what"] == "fit"
    assert len(fit.all("epoch_end")) == 2


def test_the_file_of_a_checkpoint_is_told(keras_kernel: GuardedKernel) -> None:
    code = (
        "checkpoint = keras.callbacks.ModelCheckpoint('kept-{epoch:02d}.keras')\n"
        "backup = keras.callbacks.BackupAndRestore('backup', delete_checkpoint=False)\n"
        "fresh = make(); fresh.fit(x, y, epochs=2, verbose=0, callbacks=[checkpoint, backup]);"
    )
    fit = Fitted(keras_kernel, code)
    found = [Path(event["path"]).name for event in fit.all("checkpoint")]
    assert found == ["kept-01.keras", "latest.weights.h5", "kept-02.keras", "latest.weights.h5"]
    last = fit.all("checkpoint")[2]
    assert Path(last["path"]).stat().st_mtime == pytest.approx(last["written"])


def test_a_long_row_of_quick_runs_does_not_flood_the_journal(keras_kernel: GuardedKernel) -> None:
    runs = Fitted(keras_kernel, "for _ in range(120): model.predict(x[:1], verbose=0);")
    assert 1 <= len(runs.all("fit_start")) <= 75
    assert len(runs.all("fit_start")) == len(runs.all("fit_end"))
    first = runs.all("fit_start")[0]["fit_id"]
    assert runs.progress["fit_id"] == first + 119  # the newest is shown all the same
    keras_kernel.run("import time; time.sleep(3)")
    assert len(Fitted(keras_kernel, "model.fit(x, y, verbose=0);").all("fit_start")) == 1


def test_data_is_not_kept_alive_after_the_fit(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "import gc, sys, weakref\n"
        "short = make(); data = np.ones((64, 10), 'float32'); targets = np.ones((64, 1))\n"
        "short.fit(data, targets, verbose=0)\n"
        "gone = weakref.ref(short); del short; keras.utils.clear_session(); gc.collect()\n"
        "print(sys.getrefcount(data), gone() is None)"
    )
    assert ran.stdout == "2 True\n"


def test_status_tells_of_the_last_training(keras_kernel: GuardedKernel) -> None:
    keras_kernel.run("model.fit(x, y, epochs=2, verbose=0);")
    lines = keras_kernel.run("%tfguard").stdout.splitlines()
    assert any(
        line.startswith("Last training: fit of tiny, epoch 2 of 2, step 3 of 3, batch size 32")
        for line in lines
    )
    assert "growth" in lines[0] or "GPU" in lines[0]


def test_tensors_and_variables_are_among_the_arrays(keras_kernel: GuardedKernel) -> None:
    done = Fitted(
        keras_kernel,
        "t, v, k = tf.ones((500, 1000)), tf.Variable(tf.ones((500, 999))), keras.Variable(np.ones((500, 998), 'float32'))",
    )
    arrays = {array["name"]: array["bytes"] for array in done.one("cell_end")["arrays"]}
    assert {name: arrays[name] for name in "tvk"} == {
        "t": 2_000_000,
        "v": 1_998_000,
        "k": 1_996_000,
    }


def test_a_failure_of_ours_leaves_the_fit_alone(keras_kernel: GuardedKernel) -> None:
    broken = """
from jupyter_tfguard.training.watch import FitWatch
def fail(*_): raise RuntimeError("ours, not yours")
kept = {name: getattr(FitWatch, name) for name in ("begins", "look", "epoch_ends", "ends")}
for name in kept: setattr(FitWatch, name, fail)
h = model.fit(x, y, epochs=2, verbose=0); print(len(h.history["loss"]))
FitWatch.__init__ = (lambda old: (lambda self, *a: fail()))(FitWatch.__init__)
h = model.fit(x, y, epochs=3, verbose=0); print(len(h.history["loss"]))
"""
    ran = keras_kernel.run(broken, timeout=120)
    assert ran.text == "2\n3\n"
    problems = keras_kernel.problems()
    assert "ours, not yours" in problems
    assert len(problems.splitlines()) < 6  # each once, not at each step


def test_unloading_gives_the_methods_back(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "%unload_ext tfguard\n"
        "print(['jupyter_tfguard' in getattr(keras.Model, n).__code__.co_filename for n in ('fit', 'evaluate', 'predict')])\n"
        "print([n for n in ('fit', 'evaluate', 'predict') if n in vars(keras.Model)])\n"
        "h = model.fit(x, y, verbose=0); print(len(h.history['loss']))"
    )
    assert ran.stdout == "[False, False, False]\n[]\n1\n"


def test_a_death_within_a_step_leaves_the_step_on_disk(tmp_path: Path) -> None:
    kernel = GuardedKernel(tmp_path).start()
    try:
        code = SETUP + (
            "import os, time\n"
            "class Dies(keras.callbacks.Callback):\n"
            "    def on_train_batch_begin(self, batch, logs=None): time.sleep(0.1)\n"
            "    def on_train_batch_end(self, batch, logs=None):\n"
            "        if self.params['epochs'] == 5 and batch == 2 and self.seen: os.kill(os.getpid(), 9)\n"
            "        self.seen = batch == 5 or self.seen\n"
            "    seen = False\n"
            "model.fit(x, y, epochs=5, batch_size=16, verbose=0, callbacks=[Dies()])"
        )
        assert kernel.die(code, timeout=180) == -signal.SIGKILL
        recorded = kernel.recording()
    finally:
        kernel.close()
    progress = recorded.progress
    assert progress is not None
    assert progress["active"] is True
    assert (progress["epoch"], progress["step"]) == (2, 3)
    assert (progress["epochs"], progress["steps"], progress["batch_size"]) == (5, 6, 16)
    assert recorded.events[-1]["kind"] == "epoch_end"
    assert progress["steps_per_second"] == pytest.approx(10, rel=0.5)


def test_too_late_is_said_by_name(tmp_path: Path) -> None:
    kernel = GuardedKernel(tmp_path, environment={"TFGUARD_DISABLE": "1"}).start()
    try:
        # No card is needed to see it: TensorFlow has made its devices, and a card is pretended.
        code = (
            "import os; del os.environ['TFGUARD_DISABLE']\n"
            "import tensorflow as tf; tf.constant(1)\n"
            "from tensorflow.python.eager import context\n"
            "gpu = context.PhysicalDevice('/physical_device:GPU:0', 'GPU')\n"
            "context._context._physical_devices.append(gpu)\n"
            "context._context._visible_device_list.append(gpu)\n"
            "from jupyter_tfguard.training import growth\n"
            "growth.gpu_present = lambda root='/': True\n"
            "print(growth.gpus_initialised())\n"
            "%load_ext tfguard\n"
            "print('TF_FORCE_GPU_ALLOW_GROWTH' in os.environ)"
        )
        lines = kernel.run(code, timeout=180).stdout.splitlines()
        recorded = kernel.recording()
    finally:
        kernel.close()
    assert [lines[0], lines[2]] == ["True", "False"]
    assert "Memory growth came too late" in lines[1]
    assert "restart the kernel and load tfguard before TensorFlow" in lines[1]
    assert recorded.header["guard"]["growth"]["state"] == "too_late"
