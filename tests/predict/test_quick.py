"""The quick estimate with real models: they are unchanged, every kind of model is traced or a reason is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel, works

SETUP = """
import random
import keras, numpy as np, tensorflow as tf
from keras import layers, ops
from jupyter_tfguard.predict.quick import QuickPrediction
from jupyter_tfguard.predict.trace import CannotTrace

MB = 1_000_000

def seq(*parts, shape=(100,), optimizer="adam", **more):
    model = keras.Sequential([keras.Input(shape), *parts])
    model.compile(optimizer, "mse", **more)
    return model

def data(*shape, y=(1,)):
    return {"x": np.zeros((8, *shape), "float32"), "y": np.zeros((8, *y), "float32")}

def step_bytes(model, arguments, batch):
    prediction = QuickPrediction(model, arguments)
    prediction._free_bytes = 0  # of the pool: it depends on the garbage of earlier tests
    found = prediction.features(batch)
    return found.pool_bytes + found.small_bytes - found.data_bytes

def reason(model, arguments):
    try:
        QuickPrediction(model, arguments)
    except CannotTrace as error:
        return str(error)
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras and the functions above."""
    with guarded_kernel(tmp_path_factory.mktemp("quick"), startup_file=False) as kernel:
        works(kernel, SETUP)
        yield kernel


def test_the_model_is_unchanged(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        def state(model):
            compiled = (model._compile_metrics, model._compile_loss)
            return {
                "weights": [w.numpy().tolist() for w in model.variables],
                "optimizer": [w.numpy().tolist() for w in model.optimizer.variables],
                "optimizer is built": model.optimizer.built,
                "slots": len(vars(model.optimizer).get("_momentums", ())),
                "metrics": [m.name for m in model.metrics],
                "built": [one.built for one in compiled],
                "attributes": [sorted(vars(one)) for one in (model, model.optimizer, *compiled)],
                "layers": [len(layer.losses) for layer in model.layers],
                "train function": model.train_function,
                "random": (random.getstate(), np.random.get_state()[1].tolist()),
                "seeds": [layer.seed_generator.state.numpy().tolist() for layer in model.layers
                          if hasattr(layer, "seed_generator")],
            }

        parts = layers.Dense(50, activity_regularizer="l2"), layers.BatchNormalization(), layers.Dropout(0.5)
        model = seq(*parts, layers.Dense(1), metrics=["mae", keras.metrics.MeanSquaredError()])
        tf.random.set_seed(1)
        following = tf.random.uniform((3,)).numpy().tolist(), tf.random.uniform((3,)).numpy().tolist()
        tf.random.set_seed(1)
        tf.random.uniform((3,))
        before = state(model)
        QuickPrediction(model, data(100)).at(32)
        assert state(model) == before
        assert not model.optimizer.built and tf.random.uniform((3,)).numpy().tolist() == following[1]
        assert layers.Dense(1).name == "dense_2"

        model.fit(**data(100), verbose=0)
        before = state(model)
        function = model.train_function
        QuickPrediction(model, data(100)).at(32)
        assert state(model) == before and model.train_function is function
        model.fit(**data(100), verbose=0)
        assert model.optimizer.iterations.numpy() == 2
        """,
    )


def test_the_graph_is_free_afterwards(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        import gc
        from tensorflow.python.framework import ops as graphs

        def op_count():
            return sum(type(one).__name__ == "Operation" for one in gc.get_objects())

        @tf.custom_gradient
        def own(x):
            return x, lambda dy: dy

        model = seq(layers.Dense(8), layers.Lambda(own, output_shape=(8,)), layers.Dense(1))
        QuickPrediction(model, data(100))
        gc.collect()
        gc.disable()
        names, before = set(graphs.gradient_registry.list()), op_count()
        program = QuickPrediction(model, data(100))._program
        assert set(graphs.gradient_registry.list()) == names
        left = op_count() - before
        assert left < len(program.ops) / 2, (left, len(program.ops))
        gc.collect()
        assert op_count() == before
        gc.enable()
        """,
    )


def test_nothing_is_allocated_for_the_slots(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(layers.Dense(50_000))
        arguments = data(100, y=(50_000,))
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        prediction = QuickPrediction(model, arguments)
        after = tf.config.experimental.get_memory_info("CPU:0")["current"]
        assert after - before < MB, after - before
        weights = 4 * 101 * 50_000
        assert abs(prediction.at(1).slots_bytes - 2 * weights) < 100
        assert 0 < prediction.at(1).gradients_bytes <= weights
        """,
    )


def test_a_larger_batch_needs_more_and_the_largest_that_fits_is_found(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        convolutions = [layers.Conv2D(32, 3, activation="relu") for _ in range(3)]
        model = seq(*convolutions, layers.Flatten(), layers.Dense(1), shape=(64, 64, 3))
        prediction = QuickPrediction(model, data(64, 64, 3))
        small, large = prediction.at(8), prediction.at(80)
        assert small.low_bytes < small.best_bytes < small.high_bytes
        live = [prediction.features(batch).live_bytes for batch in (8, 80)]
        assert 8 < live[1] / live[0] < 12, live
        parts = ("gradients", "slots", "activations", "graph", "data")
        assert sum(getattr(large, f"{part}_bytes") for part in parts) == large.best_bytes
        assert large.unknown == ()

        found = prediction.largest_batch(large.high_bytes)
        assert 80 * 0.9 < found and prediction.at(found).high_bytes <= large.high_bytes
        assert prediction.largest_batch(MB) is None
        """,
    )


def test_an_own_training_step_and_a_subclassed_model(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Own(keras.Model):
            def __init__(self, halves):
                super().__init__()
                self.halves, self.steps = halves, 0
                self.inner = [layers.Dense(1000, activation="relu") for _ in range(8)]
                self.last = layers.Dense(1)

            def call(self, x):
                for layer in self.inner:
                    x = layer(x)
                return self.last(x)

            def train_step(self, data):
                self.steps += 1
                x, y = data
                half = ops.shape(x)[0] // self.halves
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y[:half], y_pred=self(x[:half]))
                found = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(found, self.trainable_variables))
                return {"loss": loss}

        sizes = []
        for halves in (1, 2):
            model = Own(halves)
            model(np.zeros((1, 100), "float32"))
            model.compile("sgd", "mse")
            sizes.append(step_bytes(model, data(100), 20_000))
            assert model.steps == 0
        assert 1.6 < sizes[0] / sizes[1] < 2.4, sizes
        """,
    )


def test_a_loop_keeps_the_states_of_all_steps(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        sizes = []
        for steps in (50, 100):
            model = seq(layers.LSTM(256), layers.Dense(1), shape=(None, 16))
            prediction = QuickPrediction(model, data(steps, 16))
            sizes.append(prediction.features(512).live_bytes)
            assert set(prediction.at(512).unknown) <= {model.layers[0].name}
        states = 512 * 256 * 4
        assert sizes[1] - sizes[0] > 5 * 50 * states, sizes
        """,
    )


def test_a_product_with_one_and_a_sum_with_zero_compute_nothing(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        def computed(change):
            model = seq(layers.Dense(500), layers.Lambda(change), layers.Dense(1))
            ops = QuickPrediction(model, data(100))._program.ops
            return {op.kind for op in ops if "lambda" in op.name} & {"Mul", "AddV2"}

        assert computed(lambda t: t * 1.0 + 0.0) == set()
        assert computed(lambda t: t * 2.0 + 3.0) == {"Mul", "AddV2"}
        """,
    )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_needs_less(keras_kernel: GuardedKernel, policy: str) -> None:
    works(
        keras_kernel,
        f"""
        sizes = []
        for policy in ("float32", "{policy}"):
            keras.config.set_dtype_policy(policy)
            model = seq(*(layers.Dense(500, activation="relu") for _ in range(6)), layers.Dense(1))
            sizes.append(step_bytes(model, data(100), 20_000))
        keras.config.set_dtype_policy("float32")
        assert 0.45 < sizes[1] / sizes[0] < 0.75, sizes
        """,
    )


def test_several_inputs_and_a_dataset(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        a, b = keras.Input((64,), name="a"), keras.Input((64,), name="b")
        both = layers.Concatenate()([layers.Dense(500)(a), layers.Dense(500)(b)])
        model = keras.Model({"a": a, "b": b}, layers.Dense(1)(both))
        model.compile("adam", "mse")
        x, y = {name: np.zeros((8, 64), "float32") for name in "ab"}, np.zeros((8, 1), "float32")
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
        sizes = [step_bytes(model, arguments, 2000) for arguments in ({"x": x, "y": y}, {"x": dataset})]
        assert sizes[0] == sizes[1] > 2000 * 1000 * 4
        """,
    )


def test_a_call_of_a_function_is_followed(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Called(layers.Layer):
            def __init__(self, is_function):
                super().__init__()
                self.inner = [layers.Dense(400, activation="tanh") for _ in range(3)]
                self.function = tf.function(self.work) if is_function else self.work

            def build(self, shape):
                for layer in self.inner:
                    layer.build(shape)

            def work(self, x):
                for layer in self.inner:
                    x = layer(x)
                return x

            def call(self, x):
                return self.function(x)

        sizes = [
            step_bytes(seq(Called(is_function), layers.Dense(1), shape=(400,)), data(400), 8000)
            for is_function in (False, True)
        ]
        assert abs(sizes[0] / sizes[1] - 1) < 0.15, sizes
        """,
    )


def test_a_layer_of_unknown_size_is_named(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Opaque(layers.Layer):
            def call(self, x):
                return tf.reshape(tf.numpy_function(lambda v: v, [x], tf.float32), (-1, 100))

            def compute_output_shape(self, shape):
                return shape

        given = keras.Input((100,))
        x = layers.Dense(100)(given)
        x = Opaque(name="opaque")(x)
        model = keras.Model(given, layers.Dense(1)(x))
        model.compile("adam", "mse")
        found = QuickPrediction(model, data(100)).at(32)
        assert "opaque" in found.unknown, found.unknown
        """,
    )


def test_what_cannot_be_traced_has_a_reason(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Broken(keras.Model):
            def train_step(self, data):
                raise RuntimeError("no step today")

        given = keras.Input((100,))
        broken = Broken(given, layers.Dense(1)(given))
        broken.compile("adam", "mse")
        assert "RuntimeError while it was traced: no step today" in reason(broken, data(100))

        unbuilt = keras.Sequential([layers.Dense(1)])
        unbuilt.compile("adam", "mse")
        assert "not built" in reason(unbuilt, data(100))
        model = keras.Sequential([keras.Input((100,)), layers.Dense(1)])
        assert "not compiled" in reason(model, data(100))
        assert "run_eagerly" in reason(seq(layers.Dense(1), run_eagerly=True), data(100))
        assert "XLA" in reason(seq(layers.Dense(1), jit_compile=True), data(100))
        assert "generator" in reason(seq(layers.Dense(1)), {"x": (i for i in range(3))})
        assert "not a model" in reason(object(), data(100))
        fixed = keras.Input(batch_shape=(8, 100))
        model = keras.Model(fixed, layers.Dense(1)(layers.Reshape((100,))(fixed)))
        model.compile("adam", "mse")
        assert reason(model, data(100)) is None or "batch" in reason(model, data(100))
        """,
    )
