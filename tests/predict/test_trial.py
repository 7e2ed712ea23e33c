"""Trials in real child processes: what can be sent, how a trial ends, and that the user's process stays as it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel, works
from tests.rigs.waiting import wait_until

SETUP = """
import contextlib, os, signal, sys, threading
import numpy as np, psutil, tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from jupyter_tfguard.predict.trial.trial import Ending, trial as trial_alone
from jupyter_tfguard.predict.trial.data import DataSource
from jupyter_tfguard.predict.trial.process import TrialProcess
from jupyter_tfguard.training.plan import FitPlan

KERNEL = os.getpid()
PROCESS = TrialProcess()
def trial(model, arguments, size, **how):
    return trial_alone(model, FitPlan.of(arguments), size, process=PROCESS, **how)
X, Y = np.random.rand(64, 32).astype("float32"), np.random.rand(64, 1).astype("float32")

def seq(*parts):
    model = keras.Sequential([keras.Input((32,)), *parts, layers.Dense(1)])
    model.compile("adam", "mse")
    return model

class InChild(layers.Layer):
    "Calls a function of the user's, but only in another process."
    def __init__(self, function):
        super().__init__()
        self.function = function
    def call(self, x):
        if os.getpid() != KERNEL:
            self.function()
        return x
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras, the functions above and a folder of its own for temporary files. The last test ends it."""
    folder = tmp_path_factory.mktemp("trial")
    (folder / "temporary").mkdir()
    environment = {"TMPDIR": str(folder / "temporary")}
    with guarded_kernel(folder, startup_file=False, environment=environment) as kernel:
        works(kernel, SETUP)
        yield kernel


def left_over(kernel: GuardedKernel) -> list[str]:
    """Children of the kernel, and temporary files of trials."""
    files = (kernel.folder / "temporary").glob("tfguard-*")
    return [*map(str, psutil.Process(kernel.pid).children(recursive=True)), *map(str, files)]


def test_a_trial_measures_a_first_fit_and_changes_nothing(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(layers.Dense(2000, activation="relu"), layers.Dropout(0.5), layers.Dense(2000))
        model.fit(X, Y, verbose=0)
        def state():
            variables = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
            seeds = [tf.random.get_global_generator().state.numpy(), np.random.get_state()[1]]
            return [one.copy() for one in variables + seeds], np.random.get_state()[2:]
        def random_numbers():
            return [*tf.random.uniform((3,)).numpy(), *keras.random.uniform((3,)).numpy()]
        keras.utils.set_random_seed(5)
        expected = random_numbers()
        keras.utils.set_random_seed(5)
        before, history, step = state(), model.history, model.train_function
        found = trial_alone(model, FitPlan.of({"x": X, "y": Y}), 16)
        assert psutil.Process().children() == []
        assert found.ending is Ending.FINISHED and found.step_count == 6, found
        assert found.source is DataSource.SAMPLES
        # The optimizer is a new one: at least its two slots for 4 million weights are counted.
        assert 2 * 4 * 4_000_000 < found.peak_bytes < 400e6, found
        after = state()
        assert before[1] == after[1] and all(map(np.array_equal, before[0], after[0]))
        assert random_numbers() == expected
        assert model.history is history and model.train_function is step
        model.fit(X, Y, verbose=0)
        """,
    )


def test_a_class_of_a_module_that_is_made_of_layers_travels(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        import pathlib, sys, tempfile
        folder = tempfile.mkdtemp()
        pathlib.Path(folder, "own_steps.py").write_text(
            "import keras\\n"
            "class Base(keras.Model):\\n"
            "    pass\\n"
            "class OwnSteps(Base):\\n"
            "    def train_step(self, data):\\n"
            "        return super().train_step(data)\\n"
        )
        sys.path.insert(0, folder)
        from own_steps import OwnSteps
        inputs = keras.Input((10,))
        model = OwnSteps(inputs, layers.Dense(1)(inputs))
        model.compile("adam", "mse")
        found = trial(model, {"x": np.ones((64, 10)), "y": np.ones((64, 1))}, 8)
        assert found.ending is Ending.FINISHED, found
        """,
    )


def test_code_of_the_notebook_travels(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Scale(layers.Layer):
            def build(self, shape):
                self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")
            def call(self, x):
                return x * self.factor

        class Schedule(keras.optimizers.schedules.LearningRateSchedule):
            "Without get_config, as in many tutorials."
            def __call__(self, step):
                return 0.001

        @tf.function
        def doubled_if_large(x):
            if tf.reduce_sum(x) > 0:  # needs AutoGraph, and AutoGraph the source
                x = x * 2
            return x

        class Own(keras.Model):
            def __init__(self, width):
                super().__init__()
                self.blocks = [layers.Dense(width), Scale()]
                self.heads = {"one": layers.Dense(1)}
                self.average = keras.metrics.Mean(name="average")
            def call(self, x, training=False):
                for block in self.blocks:
                    x = block(x)
                return self.heads["one"](doubled_if_large(x))
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y, y_pred=self(x, training=True))
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
                self.average.update_state(loss)
                return {"average": self.average.result()}

        model = Own(50)
        model.compile(keras.optimizers.Adam(Schedule()), lambda y, p: tf.reduce_mean((y - p) ** 2))
        found = trial(model, {"x": X, "y": Y}, 16)
        assert found.ending is Ending.FINISHED and found.step_count == 6, found
        """,
    )
    works(
        keras_kernel,
        """
        model.fit(X, Y, verbose=0)
        found = trial(model, {"x": X, "y": Y}, 16)
        assert found.ending is Ending.FINISHED and found.step_count == 6, found
        """,
    )
    works(
        keras_kernel,
        """
        class Functional(keras.Model):
            def train_step(self, data):
                return super().train_step(data)

        given = keras.Input((32,))
        x = Scale()(given)
        for _ in range(200):  # deeper than pickle can go
            x = layers.Activation("relu")(x)
        model = Functional(given, layers.Dense(1)(x))
        model.compile("sgd", "mse", metrics=["mae"])
        found = trial(model, {"x": X, "y": Y}, 16, steps=1)
        assert found.ending is Ending.FINISHED and found.step_count == 1, found
        """,
    )


def test_a_child_ends_at_its_memory_limit(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(layers.Dense(5000, activation="relu"), layers.Dense(5000, activation="relu"))
        found = trial(model, {"x": X, "y": Y}, 50_000, limit_bytes=800 << 20)
        assert found.ending is Ending.LIMIT and found.step_count == 0, found
        assert 0 < found.peak_bytes < 3 << 30
        """,
    )


def test_trials_of_one_process_are_all_first_fits(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        def first_to_be_killed():
            with open("/proc/self/oom_score_adj") as file:
                assert file.read().strip() == "1000"
        model = seq(InChild(first_to_be_killed), layers.Dense(2000), layers.Dense(2000))
        large = trial(model, {"x": X, "y": Y}, 64)
        process = PROCESS._process.pid
        shown = []
        small = trial(model, {"x": X, "y": Y}, 2, until_settled=True, show=lambda *what: shown.append(what))
        assert PROCESS._process.pid == process and PROCESS.pid is None
        assert 100 << 20 < PROCESS.own_bytes() < 1 << 30
        assert large.finished and large.step_count == 6, large
        assert small.finished and 2 <= small.step_count <= 4, small
        assert 2 * 4 * 4_000_000 < small.peak_bytes < 1.1 * large.peak_bytes, (small, large)
        assert shown[-1][1] <= small.peak_bytes, shown
        """,
    )


def test_where_a_fork_is_not_safe_each_trial_has_a_process(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        import pathlib, tempfile
        folder = tempfile.mkdtemp()
        pathlib.Path(folder, "keras.py").write_text(
            "import threading, sys\\n"
            "threading.Thread(target=threading.Event().wait, daemon=True).start()\\n"
            "sys.path.remove(__file__.rpartition('/')[0])\\n"
            "del sys.modules['keras']\\n"
            "import keras\\n"
        )
        sys_path = list(sys.path)
        sys.path.insert(0, folder)
        try:
            with contextlib.closing(TrialProcess()) as process:
                for _ in range(2):
                    found = trial_alone(seq(), FitPlan.of({"x": X, "y": Y}), 2, process=process, until_settled=True)
                    assert found.finished, found
                    assert process._process is None
        finally:
            sys.path[:] = sys_path
        """,
    )


def test_a_crash_or_an_exception_of_the_child_is_reported(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        def crash():
            os.kill(os.getpid(), signal.SIGSEGV)
        def fail():
            raise ValueError("no such table")
        found = trial(seq(InChild(crash)), {"x": X, "y": Y}, 16)
        assert (found.ending, found.reason) == (Ending.SIGNAL, "SIGSEGV"), found
        """,
    )
    works(
        keras_kernel,
        """
        found = trial(seq(InChild(fail)), {"x": X, "y": Y}, 16)
        assert found.ending is Ending.RAISED and "no such table" in found.reason, found
        found = trial(seq(InChild(signal.pause)), {"x": X, "y": Y}, 16, timeout_seconds=5)
        assert found.ending is Ending.TIMEOUT, found
        """,
    )


def test_what_cannot_be_sent_is_named(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(InChild(print))
        model.layers[0].lock = threading.Lock()
        found = trial(model, {"x": X, "y": Y}, 16)
        assert found.ending is Ending.NOT_SENT and found.peak_bytes is None
        name = model.layers[0].name
        assert f"model, layer {name}.lock (lock) cannot be sent" in found.reason, found.reason
        one_lock = threading.Lock()
        def locked():
            with one_lock:
                pass
        found = trial(seq(InChild(locked)), {"x": X, "y": Y}, 16)
        assert ".function, name one_lock (lock)" in found.reason, found.reason
        found = trial(seq(), {"x": (X for _ in range(3))}, 16)
        assert found.ending is Ending.NOT_SENT and "x (generator)" in found.reason, found
        """,
    )


def test_datasets_are_replaced_by_what_they_declare(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        words = keras.Sequential([keras.Input((12,), dtype="int32"), layers.Embedding(50, 8), layers.Flatten(), layers.Dense(3)])
        words.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        given = np.random.randint(0, 50, (64, 12)), np.random.randint(0, 3, 64)
        plain = tf.data.Dataset.from_tensor_slices(given).batch(32)
        found = trial(words, {"x": plain}, 16)
        assert (found.ending, found.source) == (Ending.FINISHED, DataSource.ELEMENT), found
        seen = []
        mapped = plain.map(lambda x, y: (tf.numpy_function(lambda v: seen.append(1) or v, [x], x.dtype), y))
        mapped = mapped.map(lambda x, y: (tf.ensure_shape(x, (None, 12)), y))
        found = trial(words, {"x": mapped}, 16)
        assert (found.ending, found.source) == (Ending.FINISHED, DataSource.SPEC), found
        assert not seen
        from jupyter_tfguard.predict.trial.data import trial_data
        large = tf.data.Dataset.range(99).map(lambda n: tf.zeros((1000, 1000))).batch(8)
        assert trial_data(FitPlan.of({"x": large}), 64, 6).arrays["x"].shape == (1, 1000, 1000)  # 4 MB, not 256
        found = trial(words, {"x": mapped.map(lambda x, y: (tf.ensure_shape(x, (None, None)), y)).padded_batch(2)}, 16)
        assert found.ending is Ending.NOT_SENT and "does not declare the shape" in found.reason, found
        """,
    )


def test_large_arrays_are_replaced_by_random_ones_of_their_range(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        def check_range(x):  # in the child
            assert 5 <= x.min() and x.max() <= 9 and x.max() > x.min(), (x.min(), x.max())
            return np.float32(x.mean())
        class Checked(keras.Model):
            def train_step(self, data):
                tf.ensure_shape(tf.numpy_function(check_range, [data[0]], tf.float32), ())
                return super().train_step(data)
        given = keras.Input((1_000_000,), dtype="int8")
        model = Checked(given, layers.Dense(1)(given[:, :5]))
        model.compile("adam", "mse")
        x = np.random.randint(5, 10, (40, 1_000_000), "int8")
        found = trial(model, {"x": x, "y": np.zeros(40)}, 20)
        assert (found.ending, found.source) == (Ending.FINISHED, DataSource.RANDOM), found
        """,
    )


def test_texts_and_vocabularies_travel(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        words = layers.TextVectorization(output_sequence_length=8)
        texts = np.array(["the cat sat", "the dog ran away"] * 32, dtype=object)
        words.adapt(texts)
        model = keras.Sequential([keras.Input((1,), dtype="string"), words, layers.Embedding(20, 4), layers.Flatten(), layers.Dense(1)])
        model.compile("adam", "mse")
        data = tf.data.Dataset.from_tensor_slices((texts[:, None], Y)).batch(16)
        found = trial(model, {"x": data}, 16)
        assert (found.ending, found.source) == (Ending.FINISHED, DataSource.ELEMENT), found
        assert list(words(["the dog"])[0].numpy()[:2]) == [words.get_vocabulary().index(w) for w in ("the", "dog")]
        """,
    )


def test_no_child_is_left_after_the_trials_an_interrupt_or_the_end_of_the_kernel(
    keras_kernel: GuardedKernel,
) -> None:
    kernel = keras_kernel
    works(kernel, "PROCESS.close()")
    assert left_over(kernel) == []
    cell = "trial_alone(seq(InChild(signal.pause)), FitPlan.of({'x': X, 'y': Y}), 16)"
    request = kernel.send(cell)
    wait_for_trial(kernel)
    kernel.manager.interrupt_kernel()
    assert kernel.finish(request).error == "KeyboardInterrupt"
    assert left_over(kernel) == []

    kernel.send(cell)
    ends = wait_for_trial(kernel)
    os.kill(kernel.pid, signal.SIGKILL)
    kernel.wait_for_end()
    wait_until(lambda: not any(map(works_still, ends)), "the end of both processes")


def wait_for_trial(kernel: GuardedKernel) -> list[psutil.Process]:
    """The process of the trials, and the trial that it has forked."""

    def look() -> list[psutil.Process] | None:
        children = psutil.Process(kernel.pid).children(recursive=True)
        return children if len(children) > 1 else None

    return wait_until(look, "a trial")


def works_still(process: psutil.Process) -> bool:
    """True if it has not ended."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
