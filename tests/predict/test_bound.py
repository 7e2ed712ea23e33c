"""The bound before fit: sums worked out by hand, what it does not know, and that it changes nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel, works

SETUP = """
import keras, numpy as np, tensorflow as tf
from keras import layers
from jupyter_tfguard.predict.bound.bound import bound
from jupyter_tfguard.predict.refusal import check_fit
from jupyter_tfguard.predict.own_memory import reusable_bytes
from jupyter_tfguard.training.plan import FitPlan

def seq(*parts, shape=(100,), optimizer="adam"):
    model = keras.Sequential([keras.Input(shape), *parts])
    model.compile(optimizer, "mse")
    return model

def array(count, *shape, dtype="float32", aligned=False):
    \"\"\"An array that begins where TensorFlow could use it as it is, or not.\"\"\"
    room = np.zeros(int(np.prod((count, *shape))) * np.dtype(dtype).itemsize + 128, "u1")
    start = -room.ctypes.data % 64 + (0 if aligned else 8)
    size = len(room) - 128
    return room[start : start + size].view(dtype).reshape(count, *shape)

def of(model, count=64, batch=32, shape=(100,), **more):
    return bound(model, FitPlan.of({"x": array(count, *shape, aligned=True), "batch_size": batch} | more))
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras and the functions above."""
    with guarded_kernel(tmp_path_factory.mktemp("bound"), startup_file=False) as kernel:
        works(kernel, SETUP)
        yield kernel


def test_parts_of_a_small_network_are_as_worked_out_by_hand(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        found = of(seq(layers.Dense(50, activation="relu"), layers.Dense(10)))
        weights, largest = 4 * (100 * 50 + 50 + 50 * 10 + 10), 4 * 100 * 50
        assert (found.gradients_bytes, found.slots_bytes) == (largest, 2 * weights)
        # The batch, and the output of relu, which its gradient needs and that of the second kernel.
        assert found.activations_bytes == 32 * 4 * (100 + 50)
        assert found.largest_bytes == 32 * 4 * 50  # its gradient
        assert found.unknown == () and found.batch_size == 32 and found.copies_bytes == 0
        assert found.total_bytes == 2 * weights + largest + 32 * 4 * (100 + 50 + 50)
        """,
    )


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ("layers.Dense(50, activation='gelu'), layers.Dense(10)", 50 + 50),  # before and after
        ("layers.Dense(50), layers.Activation('relu'), layers.Dense(10)", 50),
        ("layers.Dense(50), layers.BatchNormalization(), layers.Dense(10)", 50 + 50),
        ("layers.Dense(50), layers.Reshape((5, 10)), layers.Flatten(), layers.Dense(10)", 50),
        ("layers.Dense(50), layers.Dropout(0.5), layers.Dense(10)", 50 + 50 / 4),
        ("layers.Dense(50), layers.Dropout(0.0), layers.Dense(10)", 50),
        ("layers.Dense(50, trainable=False), layers.Dense(10, trainable=False)", 0),
        ("layers.Dense(50, activation='relu', trainable=False), layers.Dense(10)", 50),
        ("layers.Dense(50), layers.Dense(10, trainable=False)", 0),
        ("layers.Dense(50, activation='relu', dtype='float16'), layers.Dense(10)", 25),
    ],
)
def test_what_each_kind_of_layer_keeps(
    keras_kernel: GuardedKernel, parts: str, kept: float
) -> None:
    works(
        keras_kernel,
        f"""
        found = of(seq({parts}))
        casts = found.activations_bytes - 32 * 4 * 100
        assert casts == 32 * 4 * {kept}, casts / 32 / 4
        """,
    )


def test_layers_within_layers_count_like_the_layers_themselves(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        def parts():
            return [layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten()]
        flat = seq(*parts(), layers.Dense(2), shape=(16, 16, 3))
        nested = seq(keras.Sequential(parts()), layers.Dense(2), shape=(16, 16, 3))
        nested_twice = seq(keras.Sequential([nested.layers[0]]), layers.Dense(2), shape=(16, 16, 3))
        found = [of(model, shape=(16, 16, 3)) for model in (flat, nested, nested_twice)]
        assert found[0] == found[1] == found[2] and not found[0].unknown

        one = keras.Sequential([keras.Input((16, 16, 3)), *parts()])
        frames = seq(layers.TimeDistributed(one), layers.Flatten(), layers.Dense(2), shape=(5, 16, 16, 3))
        many = of(frames, shape=(5, 16, 16, 3))
        together = 32 * 5 * (7 * 7 * 8) * 4  # the outputs of the frames, in one tensor
        assert many.activations_bytes == 5 * found[0].activations_bytes + together

        a, b, shared = keras.Input((100,)), keras.Input((100,)), layers.Dense(50, activation="relu")
        twice = keras.Model([a, b], layers.Dense(1)(layers.Add()([shared(a), shared(b)])))
        twice.compile("sgd", "mse")
        x = array(64, 100, aligned=True)
        two = bound(twice, FitPlan.of({"x": [x, x], "batch_size": 32}))
        assert two.activations_bytes == 32 * 4 * (2 * 100 + 2 * 50 + 50)
        """,
    )


@pytest.mark.parametrize(
    ("optimizer", "each"),
    [
        ("'sgd'", 0),
        ("keras.optimizers.SGD(momentum=0.9)", 1),
        ("keras.optimizers.Adam(amsgrad=True)", 3),
        ("keras.optimizers.RMSprop(centered=True)", 2),
        ("keras.optimizers.LossScaleOptimizer(keras.optimizers.AdamW())", 2),
        ("keras.optimizers.Adam(gradient_accumulation_steps=4)", 3),
    ],
)
def test_slots_are_those_that_the_optimizer_will_create(
    keras_kernel: GuardedKernel, optimizer: str, each: int
) -> None:
    works(
        keras_kernel,
        f"""
        model = seq(layers.Dense(50), optimizer={optimizer})
        expected = of(model)
        assert expected.slots_bytes == {each} * 4 * (100 * 50 + 50)
        model.optimizer.build(model.trainable_variables)
        created = sum(v.shape.num_elements() for v in model.optimizer.variables if v.shape.rank)
        assert created * 4 == expected.slots_bytes
        assert of(model).slots_bytes == 0
        """,
    )


def test_embeddings_count_by_their_use_and_not_by_their_rows(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(layers.Embedding(100_000, 64), layers.Flatten(), layers.Dense(1), shape=(20,))
        found = of(model, shape=(20,))
        assert found.gradients_bytes == 4 * 20 * 64
        assert found.slots_bytes == 2 * 4 * (20 * 64 + 1)
        """,
    )


def test_only_what_is_there_at_the_same_time_is_added_up(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        # The widest output is gone when the others are there: its gradient comes when they are not needed any more.
        def wide(trainable):
            parts = [layers.Dense(900, trainable=trainable), *[layers.Dense(300, activation="relu") for _ in range(4)]]
            found = of(seq(*parts))
            return found.activations_bytes // 128, found.largest_bytes // 128
        kept = 100 + 900 + 4 * 300
        assert wide(True) == (kept, 300)  # the gradient of the last output
        assert wide(False) == (kept, 300)

        def gone(**how):
            found = of(seq(layers.Dense(900, **how), layers.Dense(5, **how), layers.Dense(300), layers.Dense(300)))
            return found.activations_bytes // 128, found.largest_bytes // 128
        assert gone(trainable=False) == (100 + 5 + 300, 900 + 100 - 405)  # frozen: in the forward pass only
        assert gone() == (100 + 900 + 5 + 300, 595)  # 100 + 900, and the gradient of the 900

        # Gradients wait for each other where their common norm is needed, or whether all of them are finite.
        clips = keras.optimizers.SGD(global_clipnorm=1.0)
        scales = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
        sizes = [of(seq(layers.Dense(50), layers.Dense(50), optimizer=o)).gradients_bytes for o in ("sgd", clips, scales)]
        assert sizes == [4 * 5000, 4 * (5000 + 2500 + 100), 4 * (5000 + 2500 + 100)]
        """,
    )


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ("x=array(100, 3), batch_size=32", 32),
        ("x=array(100, 3)", 32),
        ("x=array(20, 3), batch_size=64", 20),
        ("x=array(100, 3), batch_size=64, validation_split=0.5", 50),
        ("x=array(100, 3), steps_per_epoch=3", 34),
        ("x={'a': array(100, 3), 'b': array(100, 2)}, batch_size=8", 8),
        ("x=tf.zeros((100, 3)), batch_size=64", 64),
        ("x=[[1.0, 2.0]] * 100_000, batch_size=64", None),
        ("x=(row for row in [1]), batch_size=64", None),
        ("x=tf.data.Dataset.range(100).batch(30)", 30),
        ("x=tf.data.Dataset.range(100).batch(300)", 100),
        ("x=tf.data.Dataset.range(100).shuffle(9).batch(30).map(lambda x: x).prefetch(2)", 30),
        ("x=tf.data.Dataset.range(100).repeat().batch(300)", 300),
        ("x=tf.data.Dataset.range(100).filter(lambda x: x > 90).batch(30)", None),
        ("x=tf.data.Dataset.range(100).batch(30).unbatch()", None),
        ("x=None", None),
    ],
)
def test_the_batch_is_never_taken_for_larger_than_it_is(
    keras_kernel: GuardedKernel, arguments: str, size: int | None
) -> None:
    works(
        keras_kernel,
        f"found = FitPlan.of(dict({arguments})).first_batch\nassert found == {size}, found",
    )


def test_copies_of_arrays_are_those_that_keras_makes(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        mib = 1 << 20
        def copies(dtype="float32", aligned=False, **more):
            return FitPlan.of({"x": array(1024, 256, dtype=dtype, aligned=aligned)} | more).copies_bytes
        assert copies() == (mib, mib)
        assert copies(aligned=True) == (0, 0)
        assert copies("float64", aligned=True) == (mib, 2 * mib)  # converted, then copied
        assert copies("uint8") == (mib // 4, mib // 4)
        pair = (array(1024, 256), array(1024, 256))
        assert copies(validation_data=pair) == (3 * mib, 3 * mib)
        assert FitPlan.of({"x": tf.zeros((1024, 256))}).copies_bytes == (0, 0)
        """,
    )


def test_what_is_not_known_is_named_and_not_counted(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = layers.Dense(5)
            def call(self, x):
                return self.dense(x)
        class Steps(keras.Model):
            def train_step(self, data):
                return super().train_step(data)
        own = Own()
        own.compile("adam", "mse")
        assert "the weights" in of(own).unknown and of(own).gradients_bytes == 0
        own(array(2, 100))
        found = of(own)
        assert found.activations_bytes == 0 and "class of its own" in found.unknown[0]
        assert found.gradients_bytes == 4 * 500 and found.fitting_batch(10**9, None) is None

        given = keras.Input((100,))
        steps = Steps(given, layers.Dense(5)(given))
        steps.compile("adam", "mse")
        assert of(steps).activations_bytes == 0 and "training step" in of(steps).unknown[0]

        xla = seq(layers.Dense(5))
        xla.compile("adam", "mse", jit_compile=True)
        assert of(xla).unknown == ("what XLA keeps",)

        with keras.RematScope(mode="full"):
            less = seq(layers.Dense(5, activation="relu"), layers.Dense(5))
        assert of(less).unknown == ("what rematerialization saves",)

        open_size = seq(layers.Conv2D(4, 3, name="open"), layers.GlobalMaxPooling2D(), shape=(None, None, 3))
        assert "open" in of(open_size, shape=(9, 9, 3)).unknown
        """,
    )


def test_a_model_is_the_same_afterwards(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(layers.Dense(50), layers.Dropout(0.5), layers.BatchNormalization())
        seeds = [v for v in model.variables if "seed" in v.path]
        before = model.get_weights(), [np.array(s) for s in seeds], np.random.get_state()[1].copy()
        keys = set(vars(model)), set(vars(model.optimizer))
        of(model)
        check_fit(model, FitPlan.of({"x": array(64, 100), "batch_size": 8}), lambda: 10**12)
        after = model.get_weights(), [np.array(s) for s in seeds], np.random.get_state()[1]
        assert seeds and all(np.array_equal(a, b) for a, b in zip(before[0], after[0]))
        assert all(map(np.array_equal, before[1], after[1])) and np.array_equal(before[2], after[2])
        assert keys == (set(vars(model)), set(vars(model.optimizer)))
        assert not model.optimizer.built and model.train_function is None
        """,
    )


def test_memory_that_an_earlier_fit_left_is_used_again(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(*[layers.Dense(2048, activation="relu") for _ in range(3)], optimizer="sgd")
        x, y = array(4096, 100), array(4096, 2048)
        arguments = {"x": x, "y": y, "batch_size": 4096}
        plan = FitPlan.of(arguments)
        need = bound(model, plan).total_bytes
        little = need // 4
        refusal = check_fit(model, plan, lambda: little)
        assert refusal is not None and refusal.need_bytes == need > 120 << 20
        model.fit(**arguments, verbose=0)
        assert reusable_bytes() > need - little
        assert check_fit(model, plan, lambda: little) is None
        """,
    )


def test_nothing_imports_tensorflow() -> None:
    code = (
        "import sys, types\n"
        "from jupyter_tfguard.predict.refusal import check_fit\n"
        "from jupyter_tfguard.predict.own_memory import reusable_bytes\n"
        "from jupyter_tfguard.training.plan import FitPlan\n"
        "assert reusable_bytes() >= 0\n"
        "assert check_fit(types.SimpleNamespace(), FitPlan.of({'x': None}), lambda: 0) is None\n"
        "assert not {'tensorflow', 'keras', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
