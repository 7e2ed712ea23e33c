"""Models for ``prediction.py``: each function takes the batch size and returns a compiled model and the arguments of fit.

Every case has the input of six steps, as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.bench import bound_models
from tests.bench.bound_models import SPARSE, images, labels

Case = tuple[Any, dict[str, Any]]
STEPS = 6
bound_models.STEPS = STEPS


def compiled(model: Any, x: Any, y: Any, loss: str, batch: int, optimizer: Any) -> Case:
    """The case of one model, with its parts in the order of ``bound_models``."""
    model.compile(optimizer=optimizer, loss=loss)
    return model, {"x": x, "y": y, "batch_size": batch}


def case(name: str, batch: int, optimizer: Any) -> Case:
    """A model of this file or of ``bound_models``, with an optimizer."""
    found = globals().get(name) or getattr(bound_models, name)
    return compiled(*found(batch), batch, optimizer)


class Subclassed(keras.Model):
    """A class of its own, with noise and a skip connection in ``call``."""

    def __init__(self) -> None:
        super().__init__()
        self.first = layers.Conv2D(32, 3, padding="same", activation="relu")
        self.second = layers.Conv2D(32, 3, padding="same", activation="relu")
        self.dropout = layers.Dropout(0.3)
        self.noise = layers.GaussianNoise(0.1)
        self.head = layers.Dense(10, activation="softmax")

    def call(self, x: Any, training: bool = False) -> Any:
        x = self.first(self.noise(x, training=training))
        x = self.dropout(x + self.second(x), training=training)
        return self.head(ops.mean(x, axis=(1, 2)))


def subclassed(batch: int) -> bound_models.Case:
    """A subclassed model, built by calling it."""
    model = Subclassed()
    model(np.zeros((1, 48, 48, 3), "float32"))
    return model, images(batch, 48, 48, 3), labels(batch, 10), SPARSE


class HalfBatches(keras.Model):
    """Its own training step: the gradients of two half batches are added."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        half = ops.shape(x)[0] // 2
        total = None
        for part in (slice(None, half), slice(half, None)):
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y[part], y_pred=self(x[part], training=True))
            found = tape.gradient(loss, self.trainable_variables)
            total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
        self.optimizer.apply_gradients(zip(total, self.trainable_variables, strict=True))
        return {"loss": loss}


def custom_step(batch: int) -> bound_models.Case:
    """A training step of its own."""
    given = keras.Input((32, 32, 3))
    x = layers.Conv2D(48, 3, padding="same", activation="relu")(given)
    x = layers.Conv2D(48, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(96, 3, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    model = HalfBatches(given, layers.Dense(10, activation="softmax")(x))
    return model, images(batch, 32, 32, 3), labels(batch, 10), SPARSE


def multi_in(batch: int) -> bound_models.Case:
    """Images and a table."""
    image, table = keras.Input((64, 64, 3), name="image"), keras.Input((200,), name="table")
    x = layers.Conv2D(24, 5, strides=2, padding="same")(image)
    x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2D(48, 3, padding="same", activation="elu")(x)
    x = layers.AveragePooling2D(4)(x)
    z = layers.Dense(256, activation="relu")(table)
    x = layers.Concatenate()([layers.Flatten()(x), z])
    x = layers.Dense(128, activation="relu")(x)
    model = keras.Model({"image": image, "table": table}, layers.Dense(1)(x))
    data = {"image": images(batch, 64, 64, 3), "table": images(batch, 200)}
    return model, data, images(batch, 1), "mse"


def convlstm(batch: int) -> bound_models.Case:
    """A convolutional recurrent layer over six frames."""
    model = keras.Sequential(
        [
            keras.Input((6, 32, 32, 2)),
            layers.ConvLSTM2D(16, 3, padding="same"),
            layers.Conv2D(1, 3, padding="same"),
        ]
    )
    return model, images(batch, 6, 32, 32, 2), images(batch, 32, 32, 1), "mse"


def vit(batch: int) -> bound_models.Case:
    """Patches of an image, then attention."""
    given = keras.Input((48, 48, 3))
    x = layers.Conv2D(96, 6, strides=6)(given)
    x = layers.Reshape((64, 96))(x)
    for _ in range(4):
        x = bound_models._attention_block(x, 96, 4)
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(given, layers.Dense(10, activation="softmax")(x))
    return model, images(batch, 48, 48, 3), labels(batch, 10), SPARSE


def rnn_masked(batch: int) -> bound_models.Case:
    """Masked sequences of any length."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(5000, 64, mask_zero=True),
            layers.Bidirectional(layers.LSTM(64, return_sequences=True)),
            layers.GRU(64),
            layers.Dense(1),
        ]
    )
    return model, labels(batch, 5000, 60), images(batch, 1), "mse"


def mlp_wide(batch: int) -> bound_models.Case:
    """Three layers of 4096 units."""
    model = keras.Sequential([keras.Input((1024,))])
    for _ in range(3):
        model.add(layers.Dense(4096, activation="relu"))
    model.add(layers.Dense(10, activation="softmax"))
    return model, images(batch, 1024), labels(batch, 10), SPARSE


def mlp_bn(batch: int) -> bound_models.Case:
    """Normalized layers of 1500 units."""
    model = keras.Sequential([keras.Input((700,))])
    for _ in range(5):
        model.add(layers.Dense(1500, use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
        model.add(layers.Dropout(0.2))
    model.add(layers.Dense(5, activation="softmax"))
    return model, images(batch, 700), labels(batch, 5), SPARSE


class Repeated(layers.Layer):
    """One dense layer, repeated in a ``tf.while_loop``."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(512, activation="tanh")

    def build(self, shape: Any) -> None:
        self.dense.build(shape)

    def call(self, x: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            return i + 1, state + self.dense(state)

        return tf.while_loop(lambda i, _: i < 12, body, (0, x))[1]


def while_layer(batch: int) -> bound_models.Case:
    """A loop inside a layer."""
    given = keras.Input((512,))
    model = keras.Model(given, layers.Dense(1)(Repeated()(given)))
    return model, images(batch, 512), images(batch, 1), "mse"


def conv_wide(batch: int) -> bound_models.Case:
    """Few layers with many channels and a large kernel."""
    model = keras.Sequential(
        [
            keras.Input((40, 40, 1)),
            layers.Conv2D(64, 5, padding="same", activation="gelu"),
            layers.Conv2D(128, 3, strides=2, padding="same", activation="gelu"),
            layers.Conv2D(128, 3, padding="same", activation="gelu"),
            layers.GlobalMaxPooling2D(),
            layers.Dense(30, activation="softmax"),
        ]
    )
    return model, images(batch, 40, 40, 1), labels(batch, 30), SPARSE


def conv_float16(batch: int) -> bound_models.Case:
    """Mixed precision with a loss scale."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    return bound_models.cnn_photo(batch)


def _application(build: Callable[..., Any], batch: int, size: int) -> bound_models.Case:
    model = build(weights=None, input_shape=(size, size, 3), classes=10)
    return model, images(batch, size, size, 3), labels(batch, 10), SPARSE


def densenet121(batch: int) -> bound_models.Case:
    """Many small layers and concatenations."""
    return _application(keras.applications.DenseNet121, batch, 64)


def resnet50(batch: int) -> bound_models.Case:
    """A deep residual network."""
    return _application(keras.applications.ResNet50, batch, 96)


def vgg16(batch: int) -> bound_models.Case:
    """Large weights and large activations."""
    return _application(keras.applications.VGG16, batch, 64)
