"""Real fits of the real Keras in a real kernel, followed without user code."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel
from tests.training.fit_rig import SETUP, Fitted


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


def test_a_data_set_reports_its_batch(keras_kernel: GuardedKernel) -> None:
    code = "data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(9).batch(24).map(lambda a, b: (a, b)).prefetch(2)\n"
    fit = Fitted(keras_kernel, code + "model.fit(data, verbose=0);")
    start = fit.one("fit_start")
    assert (start["batch_size"], start["batch_shape"], start["batch_dtype"]) == (
        24,
        [24, 10],
        "float32",
    )
    assert start["batch_place"] == {"kind": "pipeline", "name": "batch"}
    assert (fit.progress["step"], fit.progress["steps"]) == (4, 4)


def test_a_large_shuffle_buffer_is_noted(keras_kernel: GuardedKernel) -> None:
    code = (
        "data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (tf.zeros((500, 10, 10, 100)), b))\n"
        "data = data.shuffle(90).map(lambda a, b: (a[0, 0, 0, :10], b)).batch(24)\n"
        "model.fit(data, verbose=0);"
    )
    (kept,) = Fitted(keras_kernel, code).one("fit_start")["kept_data"]
    assert kept["size_bytes"] == 90 * (500 * 10 * 10 * 100 * 4 + 4)
    assert kept["text"].startswith("shuffle(90) holds 90 elements of 19 MiB")


def test_a_generator_and_a_sequence_are_followed(keras_kernel: GuardedKernel) -> None:
    code = "def batches():\n    while True: yield x[:8], y[:8]\nmodel.fit(batches(), steps_per_epoch=5, epochs=2, verbose=0);"
    fit = Fitted(keras_kernel, code)
    assert (fit.one("fit_start")["batch_size"], fit.one("fit_start")["steps"]) == (None, 5)
    assert fit.one("fit_start")["batch_place"]["kind"] == "generator"
    assert (fit.progress["epoch"], fit.progress["step"]) == (2, 5)
    code = (
        "class Data(keras.utils.PyDataset):\n"
        "    def __init__(self): super().__init__(); self.batch_size = 12\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return x[:12], y[:12]\n"
        "model.fit(Data(), batch_size=3, verbose=0);"  # ignored by Keras
    )
    fit = Fitted(keras_kernel, code)
    assert fit.one("fit_start")["batch_place"] == {"kind": "method", "name": "Data"}
    assert fit.one("fit_start")["batch_size"] == 12
    assert fit.progress["steps"] == 4


def test_data_of_unknown_length_has_as_many_steps_as_were_made(
    keras_kernel: GuardedKernel,
) -> None:
    code = "data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16).filter(lambda a, b: True)\n"
    fit = Fitted(keras_kernel, code + "model.fit(data, epochs=2, verbose=0);")
    assert (fit.progress["step"], fit.progress["steps"]) == (6, 6)
    run = Fitted(keras_kernel, "model.predict(data, verbose=0);")
    assert (run.progress["step"], run.progress["steps"]) == (6, 6)


# Keras' count of 5 at a time goes on to 15.
@pytest.mark.parametrize("together", [4, 5])
def test_several_steps_in_one_execution_are_all_counted(
    keras_kernel: GuardedKernel, together: int
) -> None:
    make = f"several = make(steps_per_execution={together}); "
    fit = Fitted(keras_kernel, f"{make}several.fit(x, y, batch_size=8, verbose=0);")
    assert (fit.progress["step"], fit.progress["steps"]) == (12, 12)


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


def test_the_file_of_a_checkpoint_is_reported(keras_kernel: GuardedKernel) -> None:
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
    began = time.monotonic()
    runs = Fitted(keras_kernel, "for _ in range(120): model.predict(x[:1], verbose=0);")
    # Fifty at once, and one a second.
    assert 1 <= len(runs.all("fit_start")) <= 51 + time.monotonic() - began
    assert len(runs.all("fit_start")) == len(runs.all("fit_end"))
    first = runs.all("fit_start")[0]["fit_id"]
    assert runs.progress["fit_id"] == first + 119  # the newest is shown all the same
    keras_kernel.run("import time; time.sleep(3)")
    assert len(Fitted(keras_kernel, "model.fit(x, y, verbose=0);").all("fit_start")) == 1


def test_status_reports_the_last_training(keras_kernel: GuardedKernel) -> None:
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


def test_a_death_within_a_step_leaves_the_step_on_disk(tmp_path: Path) -> None:
    ends = tmp_path / "ends.txt"
    kernel = GuardedKernel(tmp_path).start()
    try:
        code = SETUP + (
            "import os, time\n"
            "class Dies(keras.callbacks.Callback):\n"
            "    def on_train_batch_begin(self, batch, logs=None): time.sleep(0.1)\n"
            "    def on_train_batch_end(self, batch, logs=None):\n"
            f"        with open({str(ends)!r}, 'a') as file: print(time.monotonic(), file=file)\n"
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
    times = list(map(float, ends.read_text().split()))
    whole = times[-1] - times[0]
    assert 1 / whole < progress["steps_per_second"] <= 10  # each step takes 0.1 s or more


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
    assert "Memory growth was set too late" in lines[1]
    assert "restart the kernel and load tfguard before TensorFlow" in lines[1]
    assert recorded.header["guard"]["growth"]["state"] == "too_late"
