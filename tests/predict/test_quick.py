"""The quick estimate with real models: they are unchanged, every kind of model is traced or a reason is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_tfguard.predict.quick import largest_below
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

def alone(model, arguments):
    # without the free memory of the pool, which depends on earlier tests
    prediction = QuickPrediction(model, arguments)
    prediction._free_bytes = 0
    return prediction

def step_bytes(model, arguments, batch):
    prediction = alone(model, arguments)
    prediction._samples = None  # as many batches as can wait
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


@pytest.mark.quick
@pytest.mark.parametrize("fixed", [0, 700_000])
@pytest.mark.parametrize("each", [1_000, 30_000, 2_000_000])
@pytest.mark.parametrize("page", [1, 1 << 20])
@pytest.mark.parametrize("limit", [100, 1 << 20])
def test_the_largest_number_is_found_with_few_calls(
    fixed: int, each: int, page: int, limit: int
) -> None:
    calls = []

    def need(size: int) -> int:
        calls.append(size)
        return -(-(fixed + each * size) // page) * page

    available = 900_000_000
    found = largest_below(need, available, limit)
    assert found is not None
    assert need(found) <= available
    larger = found + max(1, found // 32) + 1
    assert larger > limit or need(larger) > available
    assert len(calls) < 16
    assert largest_below(need, need(limit), limit) == limit
    assert largest_below(need, need(1) - 1, limit) is None


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
        prediction = alone(model, arguments)
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

        without = alone(model, data(64, 64, 3))
        without._has_pool = False  # as without oneDNN
        assert without.features(8).pool_bytes == 0 < 10 * MB < without.features(8).small_bytes
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


def test_a_model_that_was_never_called_gets_its_number_and_stays_unbuilt(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        outside = layers.Dense(500)  # Keras does not track it

        class Holder:
            def __init__(self):
                self.layer = layers.Dense(500)

        class Auto(keras.Model):
            def __init__(self):
                super().__init__()
                self.encoder = keras.Sequential([layers.Dense(2000, activation="relu"), layers.BatchNormalization()])
                self.head, self.holder, self.count = layers.Dense(100), Holder(), 0

            def call(self, x, training=False):
                self.count += 1
                x = self.encoder(x, training=training)
                x = self.holder.layer(outside(x)) + keras.random.normal((500,))
                return self.head(x)

        def state(model):
            parts = [model, model.encoder, *model.encoder.layers, model.head, model.holder.layer, outside, model.optimizer]
            counts = keras.src.backend.common.global_state.get_global_attribute("object_name_uids")
            return (
                [(one.built, len(one.variables), sorted(vars(one))) for one in parts], model.count, dict(counts),
                random.getstate(), np.random.get_state()[1].tolist(),
            )

        keras.utils.clear_session()
        model = Auto()
        model.compile("adam", "mse")
        arguments = data(100, y=(100,))
        before = state(model)
        pool = tf.config.experimental.get_memory_info("CPU:0")["current"]
        found = alone(model, arguments).at(64)
        assert tf.config.experimental.get_memory_info("CPU:0")["current"] - pool < MB / 2
        assert state(model) == before
        keras.random.normal((2,))  # its generator is not one of the trace
        model.fit(**arguments, verbose=0)
        weights = 4 * sum(np.prod(one.shape) for one in model.trainable_weights)
        in_model = 4 * sum(np.prod(one.shape) for one in model.weights)
        assert 0 < found.gradients_bytes <= weights
        assert abs(found.weights_bytes - in_model) < 100, (found.weights_bytes, in_model)
        assert found.slots_bytes >= 2 * weights  # and the weights that Keras does not track
        built = alone(model, arguments).at(64)
        assert built.weights_bytes == 0 and built.slots_bytes < 1000

        lazy = keras.Sequential([layers.Dense(50), layers.LSTM(20)])
        lazy.compile("adam", "mse")
        assert alone(lazy, data(9, 100)).at(8).weights_bytes > 0 and not lazy.built
        """,
    )


def test_a_gan_that_was_never_called(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        class Gan(keras.Model):
            def __init__(self):
                super().__init__()
                self.judge = keras.Sequential([layers.Dense(800, activation="relu"), layers.Dense(1)])
                self.maker = keras.Sequential([keras.Input((16,)), layers.Dense(800), layers.Dense(100)])
                self.seeds, self.loss_of = keras.random.SeedGenerator(1), keras.losses.BinaryCrossentropy()

            def compile(self, judge_optimizer, maker_optimizer):
                super().compile(optimizer="sgd")
                self.steps_of = {"judge": judge_optimizer, "maker": maker_optimizer}

            def train_step(self, real):
                count = ops.shape(real)[0]
                for part in ("judge", "maker"):
                    with tf.GradientTape() as tape:
                        made = self.maker(keras.random.normal((count, 16), seed=self.seeds))
                        loss = self.loss_of(ops.ones((count, 1)), self.judge(made + real))
                    weights = getattr(self, part).trainable_weights
                    self.steps_of[part].apply_gradients(zip(tape.gradient(loss, weights), weights))
                return {"loss": loss}

        gan = Gan()
        gan.compile(keras.optimizers.Adam(), keras.optimizers.Adam())
        arguments = {"x": np.zeros((8, 100), "float32")}
        found = alone(gan, arguments).at(64)
        assert not gan.judge.built and not any(one.built for one in gan.steps_of.values())
        assert found.weights_bytes > 4 * 100 * 800 and found.slots_bytes > 4 * 100 * 800 * 2 * 2
        gan.fit(**arguments, batch_size=4, verbose=0)
        """,
    )


def test_texts_inside_the_model_and_in_the_pipeline(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        texts = np.array([f"word{n} and word{n + 1} more" for n in range(32)], dtype=object)
        split = layers.TextVectorization(max_tokens=50, output_sequence_length=30)
        split.adapt(texts)
        tail = [layers.Embedding(50, 64), layers.Conv1D(64, 3, activation="relu"), layers.GlobalMaxPooling1D(), layers.Dense(1)]
        inside = keras.Sequential([keras.Input((), dtype="string"), split, *tail])
        inside.compile("adam", "mse")
        y = np.zeros((32, 1), "float32")
        given = [{"x": texts, "y": y}, {"x": tf.constant(texts), "y": y}]
        given.append({"x": tf.data.Dataset.from_tensor_slices((texts, y)).batch(4)})
        sizes = [step_bytes(inside, one, 20_000) for one in given]
        inside.fit(**given[2], verbose=0)
        assert reason(inside, given[2]) is None
        before = keras.Sequential([keras.Input((30,), dtype="int64"), *tail])
        before.compile("adam", "mse")
        mapped = given[2]["x"].map(lambda x, y: (split(x), y))
        wanted = step_bytes(before, {"x": mapped}, 20_000)
        assert all(abs(one / wanted - 1) < 0.1 for one in sizes), (sizes, wanted)
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


def test_a_weight_changes_as_soon_as_its_gradient_is_there(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(*(layers.Dense(300) for _ in range(3)), optimizer="sgd")
        program = QuickPrediction(model, data(100, y=(300,)))._program
        assert not [op for op in program.ops if op.kind == "IdentityN"]
        needed, waiting = set(), [next(n for n, op in enumerate(program.ops) if op.kind == "AssignSubVariableOp")]
        while waiting:
            if (number := waiting.pop()) not in needed:
                needed.add(number)
                waiting += program.ops[number].waits_for
        others = sum(op.kind == "AssignSubVariableOp" for op in program.ops) - 1
        products = [op.name for op in program.ops if op.kind == "MatMul"]
        used = [program.ops[number].name for number in needed if program.ops[number].kind == "MatMul"]
        assert others == 5 and len(used) < len(products), (products, used)
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

        class Needy(keras.Model):
            def call(self, x):
                return self.missing(x)

        needy = Needy()
        needy.compile("adam", "mse")
        assert "AttributeError while it was traced" in reason(needy, data(100)), reason(needy, data(100))
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
