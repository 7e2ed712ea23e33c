"""``tfguard.estimate`` and ``%tfguard estimate`` in a real kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.memory import available
from jupyter_tfguard.predict.own_memory import CannotEstimate, Room
from tests.kernel.rig import GuardedKernel, guarded_kernel, works

SETUP = """
import keras, numpy as np, tensorflow as tf, tfguard
from keras import layers
from jupyter_tfguard.predict.answer import Grade, Verdict
from jupyter_tfguard.predict.own_memory import CannotEstimate, Room

def cnn(width=64):
    model = keras.Sequential([
        keras.Input((width, width, 3)), layers.Conv2D(32, 3, activation="relu", padding="same"),
        layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

x, y = np.zeros((256, 64, 64, 3), "float32"), np.zeros(256, "int32")
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A guarded kernel with Keras and the names above."""
    with guarded_kernel(tmp_path_factory.mktemp("estimate")) as kernel:
        works(kernel, SETUP)
        yield kernel


def test_a_fit_that_fits_is_answered_by_parts_and_unchanged(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = cnn()
        before = [w.copy() for w in model.get_weights()]
        answer = tfguard.estimate(model, x, y, batch_size=128)
        assert answer.verdict is Verdict.FITS, answer
        assert answer.grade is Grade.QUICK
        assert dict(answer.parts)["activations"] > 128 * 64 * 64 * 32 * 4
        assert sum(size for _, size in answer.parts) == answer.best_bytes
        assert answer.available_bytes == Room.now().available_bytes or answer.limit is not None
        assert answer.fitting_batch_size == len(x) == 256
        assert not model.optimizer.built
        assert all((a == b).all() for a, b in zip(before, model.get_weights()))
        """,
    )


def test_a_fit_that_does_not_fit_names_a_batch_that_does(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        free = Room.now().available_bytes
        many = int(2 * free / (64 * 64 * 32 * 4))
        spec = tf.TensorSpec((many, 64, 64, 3)), tf.TensorSpec((many,), tf.int32)
        answer = tfguard.estimate(cnn(), *spec, batch_size=many)
        assert answer.verdict is Verdict.TOO_LARGE, answer
        assert 0 < answer.fitting_batch_size < many
        assert any("gradient_accumulation_steps" in change.text for change in answer.changes)
        assert any("of the weights" in change.text for change in answer.changes) or answer.best_bytes > 10 * 2**30
        """,
    )


def test_a_measured_estimate_comes_from_a_child(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        answer = tfguard.estimate(cnn(), x, y, batch_size=32, measure=True)
        assert answer.grade is Grade.MEASURED, answer
        assert answer.low_bytes < answer.best_bytes < answer.high_bytes
        """,
    )


def test_the_free_memory_of_the_pool_is_subtracted_once(keras_kernel: GuardedKernel) -> None:
    # A fit needs 346 or 410 MiB: one more tensor is in use where two operations run at the same time. The initializers leave
    # 128 MiB of it free in the pool, here and in the child; other models have left more here.
    works(
        keras_kernel,
        """
        from jupyter_tfguard.predict.own_memory import free_in_pool
        wide = keras.Sequential([keras.Input((4096,)), layers.Dense(4096), layers.Dense(1)])
        wide.compile("adam", "mse")
        answer = tfguard.estimate(wide, np.zeros((48, 4096), "float32"), np.zeros((48, 1), "float32"), batch_size=8, measure=True)
        need, free = (size / 2**20 for size in (answer.best_bytes, free_in_pool()))
        assert free >= 128 and 300 < need + free < 450, (need, free)
        """,
    )


def test_an_estimate_is_compared_with_the_fit_that_follows(tmp_path: Path) -> None:
    # A kernel of its own: what earlier tests needed and left free in the pool would hide the need of this fit.
    with guarded_kernel(tmp_path) as kernel:
        works(kernel, SETUP)
        works(
            kernel,
            """
            model = cnn()
            answer = tfguard.estimate(model, x, y, batch_size=256)
            model.fit(x[:32], y[:32], batch_size=16, verbose=0)
            assert not any("The estimated fit" in note for note in tfguard.estimate(model, x, y, batch_size=256).notes)
            model = cnn()
            answer = tfguard.estimate(model, x, y, batch_size=256)
            model.fit(x, y, batch_size=256, verbose=0)
            notes = tfguard.estimate(model, x, y, batch_size=64).notes
            assert any(note.startswith("The estimated fit with a batch of 256 needed ") for note in notes), notes
            """,
        )
        status = kernel.run("%tfguard status").text
        assert "Last training: fit of" in status
        assert ". The estimated fit with a batch of 256 needed " in status
        # The next fit uses the memory of the first again: it is not compared.
        ran = kernel.run("model.fit(x, y, batch_size=256, verbose=0)\n%tfguard status")
        assert "The estimated fit" not in ran.text


def test_a_batch_size_is_found_by_real_trials(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        from IPython.utils.capture import capture_output
        model = cnn()
        with capture_output() as shown:
            get_ipython().run_line_magic("tfguard", "batch model.fit(x[:2], y[:2])")
        outputs = shown.outputs
        (answer,) = [one for one in outputs if "is the largest that fits" in one.data["text/plain"]]
        assert answer.data["text/plain"].startswith("batch_size=2 "), answer
        outputs.remove(answer)
        lines = [one.data["text/plain"] for one in outputs]
        assert lines[:2] == ["Tracing a training step.", "Trial 1: batch_size=2 starts. Estimated: 2."], lines
        assert lines[-1].startswith("Tried 1 batch size in "), lines
        assert [one.update for one in outputs] == [False] + [True] * (len(lines) - 1)
        """,
    )
    ran = keras_kernel.run("trained = tfguard.fit(model, x[:2], y[:2], auto_batch=True, verbose=0)")
    assert ran.error is None
    assert "batch_size=2 is the largest that fits" in ran.stdout
    works(
        keras_kernel, "assert len(trained.history['loss']) == 1 and model.optimizer.iterations == 1"
    )


def test_what_cannot_be_traced_gets_a_lower_bound(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = cnn()
        model.run_eagerly = True
        answer = tfguard.estimate(model, x, y, batch_size=64)
        assert answer.grade is Grade.BOUND, answer
        assert answer.verdict is Verdict.UNKNOWN
        assert "run_eagerly" in answer.text()
        """,
    )


def test_on_a_gpu_its_memory_is_measured(keras_kernel: GuardedKernel) -> None:
    # TensorFlow's pool of host memory stands for that of a GPU, the child is real: on_gpu_child.py.
    works(
        keras_kernel,
        f"""
        import os, types
        from pathlib import Path
        from jupyter_tfguard.predict.trial import process, trial
        from jupyter_tfguard.training.plan import FitPlan
        from jupyter_tfguard.training.gpu_settings import eager_context
        model, devices, child = cnn(), eager_context()._logical_devices, process._CHILD
        os.environ["LARGEST_BATCH"] = "64"
        process._CHILD = Path({str(Path(__file__).with_name("on_gpu_child.py"))!r})
        devices.append(types.SimpleNamespace(name="/device:GPU:0", device_type="GPU"))
        try:
            answer = tfguard.estimate(model, x, y, batch_size=64)
            refused = trial.trial(model, FitPlan.of({{"x": x, "y": y}}), 65)
        finally:
            devices.pop()
            process._CHILD = child
        assert answer.verdict is Verdict.FITS, answer
        assert answer.grade is Grade.MEASURED
        assert 64 * 64 * 64 * 32 * 4 < answer.best_bytes < 1 << 30, answer
        assert "more GPU memory" in answer.text()
        assert "1.00 GiB is available of 1.00 GiB (GPU memory)." in answer.text(), answer
        assert refused.is_too_large
        assert refused.gpu_limit_bytes == 1 << 30
        """,
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("tfguard.estimate(keras.Sequential([layers.Dense(1)]), x, y)", "not compiled"),
        ("tfguard.estimate(cnn(), iter(()))", "x, y = next(generator)"),
        ("tfguard.estimate(cnn())", "This fit has no data"),
        ("tfguard.estimate(cnn(), x[:0], y[:0])", "The data are empty"),
        (
            "tfguard.estimate(cnn(), tf.data.Dataset.from_tensor_slices((x[:0], y[:0])).batch(8))",
            "The data are empty",
        ),
        ("tfguard.estimate(cnn(32), x, y)", "fit() would fail with these data: Input 0 "),
        (
            "tfguard.estimate(cnn(), x[:, 0, 0], y)",
            "fit() would fail with these data: Invalid input shape for input",
        ),
        (
            "tfguard.estimate(cnn(), x, y[:9])",
            "fit() would fail with these data: x has 256, y has 9 samples.",
        ),
        ("tfguard.estimate(cnn(), x, y, batch_size=-1)", "batch_size=-1 is negative"),
        (
            "tfguard.estimate(cnn(), tf.data.Dataset.from_tensor_slices((x, y)))",
            "delivers single samples",
        ),
        ("tfguard.estimate(cnn(), 'text')", "cannot train on data of this type: str"),
        ("tfguard.find_batch_size(cnn(), iter(()))", "exist only while fit() runs"),
        ("tfguard.estimate(cnn, x, y)", "and this is none: function"),
        (
            "tfguard.fit(cnn(), tf.data.Dataset.from_tensor_slices((x, y)).batch(8), auto_batch=True)",
            "use a smaller .batch() in the pipeline",
        ),
    ],
)
def test_what_cannot_be_estimated_says_why(
    code: str, words: str, keras_kernel: GuardedKernel
) -> None:
    ran = keras_kernel.run(code)
    assert ran.error == "CannotEstimate"
    assert words in ran.traceback


def test_the_magic_takes_the_call_as_it_is_written(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "model = cnn()\n%tfguard estimate model.fit(x, y, batch_size=2 * 32, epochs=3)"
    )
    assert ran.error is None
    assert [shown.split(":")[0] for shown in ran.displayed] == ["batch_size=64 fits"]
    above = keras_kernel.run(
        "%tfguard estimate history = model.fit(x, y, batch_size=64).history\nother = 1"
    )
    assert [shown.split(":")[0] for shown in above.displayed] == ["batch_size=64 fits"]
    bad = keras_kernel.run("%tfguard estimate model.fit(x, y, batch=64)")
    assert "UsageError: not a call of fit: model.fit(x, y, batch=64) (got an unexpected" in bad.text
    wrong = keras_kernel.run("%tfguard estimate model")
    assert wrong.text.startswith("UsageError: not a call of fit: model.")
    unknown = keras_kernel.run("%tfguard estimate model.fit(nothing)")
    assert unknown.error == "NameError"


def test_a_batch_is_read_only_where_fit_would_read_it_too(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Train(keras.utils.PyDataset):
            read = []
            def __len__(self): return 4
            def __getitem__(self, index):
                self.read.append(index)
                return x[:48], y[:48]
        data = Train()
        answer = tfguard.estimate(cnn(), data, batch_size=8)  # which fit ignores
        assert (answer.batch_size, answer.grade, data.read) == (48, Grade.QUICK, [0]), answer
        assert answer.text().startswith("A batch of 48 fits: ") and answer.fitting_batch_size == 4 * 48
        assert "192: batches of 192 in Train.__getitem__." in answer.text(), answer

        class DataLoader:
            def __init__(self):
                self.batch_size, self.dataset = 40, [(x[n], y[n]) for n in range(64)]
                self.collate_fn = lambda samples: tuple(np.stack(part) for part in zip(*samples))
        loader = DataLoader()
        answer = tfguard.estimate(cnn(), loader)
        assert (answer.batch_size, answer.grade) == (40, Grade.QUICK), answer
        loader.batch_size, loader.dataset = None, [(x[:24], y[:24])]
        assert tfguard.estimate(cnn(), loader).batch_size == 24

        class Broken(Train):
            def __getitem__(self, index): raise OSError("no such disk")
        try:
            tfguard.estimate(cnn(), Broken())
        except CannotEstimate as no:
            assert str(no) == "Broken.__getitem__ raised OSError: no such disk"
        else:
            raise AssertionError
        """,
    )


def test_the_models_own_preprocessor_makes_its_batch(keras_kernel: GuardedKernel) -> None:
    # As the models of KerasHub do: fit takes texts, and train_step what the preprocessor makes of them.
    works(
        keras_kernel,
        """
        class Preprocessor(layers.Layer):
            def call(self, texts, y=None, sample_weight=None):
                ids = tf.random.uniform((tf.shape(texts)[0], 16), maxval=100, dtype=tf.int32)
                return keras.utils.pack_x_y_sample_weight({"ids": ids}, y, sample_weight)
        ids = keras.Input((16,), dtype="int32", name="ids")
        pooled = layers.GlobalAveragePooling1D()(layers.Embedding(100, 8)(ids))
        model = keras.Model({"ids": ids}, layers.Dense(1)(pooled))
        model.compile("adam", "mse")
        model.preprocessor = Preprocessor()
        for texts in (["a text"] * 50, np.array(["a text"] * 50)):
            answer = tfguard.estimate(model, texts, np.zeros((50, 1), "float32"), batch_size=20)
            assert (answer.batch_size, answer.grade) == (20, Grade.QUICK), answer
        piped = tf.data.Dataset.from_tensor_slices((texts, np.zeros((50, 1), "float32"))).batch(10)
        answer = tfguard.estimate(model, piped)
        assert (answer.batch_size, answer.grade) == (10, Grade.QUICK), answer
        """,
    )


def test_a_fit_on_several_devices_is_declined_with_its_reason_and_not_refused(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        with strategy.scope():
            mirrored = cnn()
        try:
            tfguard.estimate(mirrored, x, y)
        except CannotEstimate as no:
            assert "(MirroredStrategy)" in str(no), no
        else:
            raise AssertionError
        """,
    )


def test_buffers_of_a_dataset_are_named_with_their_bytes(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        from jupyter_tfguard.predict.changes import data_changes
        from jupyter_tfguard.training.plan import FitPlan
        images = tf.data.Dataset.range(5000).map(lambda n: tf.zeros((256, 256, 3)))
        def changes(data, **more):
            return [(change.text, change.saved_bytes) for change in data_changes(FitPlan.of({"x": data} | more))]
        each = 256 * 256 * 3 * 4
        (shuffled,) = changes(images.shuffle(1000).batch(32).prefetch(2))
        assert shuffled[0].startswith("shuffle(1000) holds 1,000 elements of 768 KiB"), shuffled
        assert shuffled[1] == 1000 * each
        (cached,) = changes(images.cache().batch(32))
        assert cached[0].startswith("cache() keeps all 5,000 elements in memory"), cached
        assert cached[1] == 5000 * each
        (part,) = changes(images.cache().batch(32).repeat(), steps_per_epoch=10, epochs=2)
        assert part[0].startswith("cache() keeps the first 640 elements in memory"), part
        assert changes(images.cache("/tmp/never-read").batch(32)) == []
        assert changes(tf.data.Dataset.range(10**6).shuffle(10**6).batch(32)) == []
        """,
    )


def test_the_batch_of_every_form_of_a_pipeline_is_known(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from tests.bench.pipelines import FORMS, PREPARE
        from jupyter_tfguard.training.plan import FitPlan
        names = {{"SERVER": tf.data.experimental.service.DispatchServer()}}
        exec(PREPARE, names)
        for form in FORMS:
            plan = FitPlan.of({{"x": eval(form.code, names)}})
            found = plan.batch_size, plan.place.change("fit", 4), plan.sample_count
            assert found == (form.batch_size, form.change, form.sample_count), (form.name, plan)
            assert plan.first_batch in (None, form.batch_size), (form.name, plan)
        assert FitPlan.of({{"x": iter(names["batched"])}}).batch_size == 8
        spread = tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(names["batched"])
        assert FitPlan.of({{"x": spread}}).batch_size in (None, 8)  # and no error
        """,
    )


def test_unknown_memory_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_figures(path: str) -> str:
        raise SourceUnavailable(path)

    monkeypatch.setattr(available, "read_text", no_figures)
    with pytest.raises(CannotEstimate, match="available memory is unknown"):
        Room.now()
