"""Models that the rules of the quick estimate were not chosen with: ``prediction.py --unseen`` measures them.

Do not change a rule because of one of them: then it is not unseen any more, and moves to ``prediction_models.py``. Each function takes
the batch size and returns a compiled model and the arguments of ``fit``, with data of six steps. All were written on 2026-11-27, before any of
them was measured.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from tests.bench.bound_models import SPARSE, images, labels
from tests.bench.prediction_models import STEPS, Case, compiled


def text_cnn(batch: int) -> Case:
    """Words, three convolutions side by side, the maximum of each."""
    given = keras.Input((200,), dtype="int32")
    words = layers.Embedding(20_000, 128)(given)
    found = [layers.Conv1D(128, width, activation="relu")(words) for width in (3, 4, 5)]
    x = layers.Concatenate()([layers.GlobalMaxPooling1D()(one) for one in found])
    model = keras.Model(given, layers.Dense(4, activation="softmax")(layers.Dropout(0.5)(x)))
    return compiled(model, _words(batch, 200, 20_000), labels(batch, 4), SPARSE, batch, "adam")


def bilstm_attention(batch: int) -> Case:
    """Two directions, then attention over the steps."""
    given = keras.Input((120,), dtype="int32")
    x = layers.Embedding(10_000, 96)(given)
    x = layers.Bidirectional(layers.LSTM(96, return_sequences=True))(x)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 48)(x, x))
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(given, layers.Dense(6, activation="softmax")(x))
    return compiled(model, _words(batch, 120, 10_000), labels(batch, 6), SPARSE, batch, "adam")


def generator(batch: int) -> Case:
    """Noise to images by transposed convolutions."""
    model = keras.Sequential(
        [
            keras.Input((100,)),
            layers.Dense(8 * 8 * 256),
            layers.Reshape((8, 8, 256)),
            layers.Conv2DTranspose(128, 4, 2, padding="same"),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Conv2DTranspose(64, 4, 2, padding="same"),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh"),
        ]
    )
    x = _random(batch, 100)
    return compiled(model, x, images(batch, 64, 64, 3), "mse", batch, "adam")


class Vae(keras.Model):
    """Samples between encoder and decoder; the divergence is an additional loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential(
            [
                layers.Conv2D(32, 3, 2, padding="same", activation="relu"),
                layers.Conv2D(64, 3, 2, padding="same", activation="relu"),
                layers.Flatten(),
                layers.Dense(64),
            ]
        )
        self.decoder = keras.Sequential(
            [
                layers.Dense(16 * 16 * 64, activation="relu"),
                layers.Reshape((16, 16, 64)),
                layers.Conv2DTranspose(32, 3, 2, padding="same", activation="relu"),
                layers.Conv2DTranspose(1, 3, 2, padding="same", activation="sigmoid"),
            ]
        )
        self.seed = keras.random.SeedGenerator(1)

    def call(self, x: Any) -> Any:
        mean, log_variance = ops.split(self.encoder(x), 2, axis=1)
        noise = keras.random.normal(ops.shape(mean), seed=self.seed)
        self.add_loss(ops.mean(ops.square(mean) + ops.exp(log_variance) - log_variance - 1))
        return self.decoder(mean + ops.exp(log_variance / 2) * noise)


def vae(batch: int) -> Case:
    """A variational autoencoder."""
    model = Vae()
    x = images(batch, 64, 64, 1)
    model(x[:1])
    return compiled(model, x, x, "mse", batch, "adam")


def efficientnet(batch: int) -> Case:
    """EfficientNetB0, without weights of a file."""
    model = keras.applications.EfficientNetB0(weights=None, input_shape=(96, 96, 3), classes=10)
    return compiled(model, images(batch, 96, 96, 3), labels(batch, 10), SPARSE, batch, "adam")


def mobilenet_v3(batch: int) -> Case:
    """MobileNetV3Small, without weights of a file."""
    model = keras.applications.MobileNetV3Small(weights=None, input_shape=(128, 128, 3), classes=10)
    return compiled(model, images(batch, 128, 128, 3), labels(batch, 10), SPARSE, batch, "rmsprop")


def wavenet(batch: int) -> Case:
    """Dilated causal convolutions with gates and skips."""
    given = keras.Input((1024, 1))
    x, skips = layers.Conv1D(32, 1)(given), []
    for power in range(6):
        gate, value = (
            layers.Conv1D(32, 2, padding="causal", dilation_rate=2**power, activation=one)(x)
            for one in ("sigmoid", "tanh")
        )
        found = layers.Conv1D(32, 1)(gate * value)
        skips.append(found)
        x = x + found
    x = layers.ReLU()(layers.Add()(skips))
    model = keras.Model(given, layers.Conv1D(1, 1)(x))
    return compiled(model, _random(batch, 1024, 1), _random(batch, 1024, 1), "mse", batch, "adam")


def mixer(batch: int) -> Case:
    """Patches, mixed along positions and along channels."""
    given = keras.Input((64, 64, 3))
    x = layers.Reshape((64, 192))(layers.Conv2D(192, 8, 8)(given))
    for _ in range(3):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(64)(layers.Dense(128, activation="gelu")(y))
        x = x + layers.Permute((2, 1))(y)
        y = layers.Dense(384, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(192)(y)
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(given, layers.Dense(10, activation="softmax")(x))
    return compiled(model, images(batch, 64, 64, 3), labels(batch, 10), SPARSE, batch, "adamw")


def segmentation(batch: int) -> Case:
    """Convolutions with holes beside each other, enlarged to a class for each pixel."""
    given = keras.Input((96, 96, 3))
    x = layers.Conv2D(48, 3, 2, padding="same", activation="relu")(given)
    x = layers.Conv2D(96, 3, 2, padding="same", activation="relu")(x)
    x = layers.Concatenate()(
        [
            layers.Conv2D(48, 3, padding="same", dilation_rate=rate, activation="relu")(x)
            for rate in (1, 2, 4)
        ]
    )
    x = layers.UpSampling2D(4, interpolation="bilinear")(layers.Conv2D(32, 1)(x))
    model = keras.Model(given, layers.Conv2D(5, 1, activation="softmax")(x))
    y = np.zeros((batch * STEPS, 96, 96), "int32")
    return compiled(model, images(batch, 96, 96, 3), y, SPARSE, batch, "adam")


def two_towers(batch: int) -> Case:
    """Users and items of a recommender."""
    user, item = keras.Input((1,), dtype="int32"), keras.Input((1,), dtype="int32")
    towers = []
    for given, count in ((user, 50_000), (item, 20_000)):
        x = layers.Flatten()(layers.Embedding(count, 64)(given))
        towers.append(layers.Dense(64)(layers.Dense(256, activation="relu")(x)))
    model = keras.Model([user, item], layers.Dot(1)(towers))
    x = [_words(batch, 1, 50_000), _words(batch, 1, 20_000)]
    return compiled(model, x, _random(batch, 1), "mse", batch, "adam")


def seq2seq(batch: int) -> Case:
    """An encoder whose state begins the decoder."""
    source, target = keras.Input((60,), dtype="int32"), keras.Input((60,), dtype="int32")
    _, state = layers.GRU(192, return_state=True)(layers.Embedding(8000, 96)(source))
    x = layers.GRU(192, return_sequences=True)(
        layers.Embedding(8000, 96)(target), initial_state=state
    )
    model = keras.Model([source, target], layers.Dense(2000, activation="softmax")(x))
    x = [_words(batch, 60, 8000), _words(batch, 60, 8000)]
    return compiled(model, x, _words(batch, 60, 2000), SPARSE, batch, "adam")


def convnext(batch: int) -> Case:
    """Large depthwise convolutions, normalized, widened four times."""
    given = keras.Input((96, 96, 3))
    x = layers.Conv2D(64, 4, 4)(given)
    for _ in range(4):
        y = layers.LayerNormalization()(layers.DepthwiseConv2D(7, padding="same")(x))
        x = x + layers.Dense(64)(layers.Dense(256, activation="gelu")(y))
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(given, layers.Dense(10, activation="softmax")(x))
    return compiled(model, images(batch, 96, 96, 3), labels(batch, 10), SPARSE, batch, "adamw")


def tabular(batch: int) -> Case:
    """A wide part beside a deep one with batch normalization."""
    given = keras.Input((60,))
    x = given
    for width in (512, 256, 128):
        x = layers.Dropout(0.2)(layers.ReLU()(layers.BatchNormalization()(layers.Dense(width)(x))))
    model = keras.Model(
        given, layers.Dense(1, activation="sigmoid")(layers.Concatenate()([given, x]))
    )
    y = labels(batch, 2).astype("float32")
    return compiled(model, _random(batch, 60), y, "binary_crossentropy", batch, "rmsprop")


def cnn_decayed(batch: int) -> Case:
    """Weights are part of the loss; the optimizer has a momentum."""
    decay = keras.regularizers.L2(1e-4)
    model = keras.Sequential([keras.Input((48, 48, 3))])
    for width in (32, 64, 128):
        model.add(
            layers.Conv2D(width, 3, padding="same", activation="elu", kernel_regularizer=decay)
        )
        model.add(layers.AveragePooling2D(2))
    model.add(layers.Flatten())
    model.add(layers.Dense(10, activation="softmax", kernel_regularizer=decay))
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True)
    return compiled(model, images(batch, 48, 48, 3), labels(batch, 10), SPARSE, batch, optimizer)


def _random(batch: int, *shape: int) -> Any:
    return np.random.default_rng(1).random((batch * STEPS, *shape), "float32")


def _words(batch: int, length: int, count: int) -> Any:
    found: Any = np.random.default_rng(1).integers(0, count, (batch * STEPS, length), "int32")
    return found
