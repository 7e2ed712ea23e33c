"""The quick estimate with every kind of model: it is traced, or a reason is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.rig import GuardedKernel, works
from tests.predict.quick_rig import quick_kernel


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    with quick_kernel(tmp_path_factory.mktemp("quick")) as kernel:
        yield kernel


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
        found = predicted(model, data(100)).at(32)
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
