"""Models for ``bound.py``: a function for each, which takes the batch size and returns a model, inputs, targets and a loss.

Imported in a process of its own for every case, so everything heavy is imported here at the top.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

Case = tuple[Any, Any, Any, str]
STEPS = 4


def images(batch: int, *shape: int) -> np.ndarray[Any, Any]:
    """Random inputs for all steps, float32."""
    return np.random.default_rng(0).random((batch * STEPS, *shape), dtype="float32")


def labels(batch: int, classes: int, *shape: int) -> np.ndarray[Any, Any]:
    """Random classes for all steps."""
    return np.random.default_rng(1).integers(0, classes, (batch * STEPS, *shape), dtype="int32")


SPARSE = "sparse_categorical_crossentropy"


def cnn_flat(batch: int) -> Case:
    """Convolutions, then a wide Dense after Flatten."""
    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            layers.Conv2D(32, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu", padding="same"),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    return model, images(batch, 64, 64, 3), labels(batch, 10), SPARSE


def cnn_photo(batch: int) -> Case:
    """Images of 100 by 100 without padding, as in many tutorials."""
    model = keras.Sequential(
        [
            keras.Input((100, 100, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(2, activation="softmax"),
        ]
    )
    return model, images(batch, 100, 100, 3), labels(batch, 2), SPARSE


def _residual(base: Any, width: int) -> Any:
    x = layers.Conv2D(width, 3, padding="same", use_bias=False)(base)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation("relu")(layers.Add()([base, x]))


def resnet(batch: int) -> Case:
    """Residual blocks with batch normalization."""
    given = keras.Input((32, 32, 3))
    x = layers.Conv2D(32, 3, padding="same")(given)
    for _ in range(3):
        x = _residual(x, 32)
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(given, layers.Dense(10, activation="softmax")(x))
    return model, images(batch, 32, 32, 3), labels(batch, 10), SPARSE


def unet(batch: int) -> Case:
    """Down, up, and concatenations."""
    given = keras.Input((64, 64, 3))
    a = layers.Conv2D(32, 3, padding="same", activation="relu")(given)
    a = layers.Conv2D(32, 3, padding="same", activation="relu")(a)
    b = layers.MaxPooling2D()(a)
    b = layers.Conv2D(64, 3, padding="same", activation="relu")(b)
    c = layers.UpSampling2D()(b)
    c = layers.Concatenate()([a, c])
    c = layers.Conv2D(32, 3, padding="same", activation="relu")(c)
    model = keras.Model(given, layers.Conv2D(1, 1, activation="sigmoid")(c))
    return model, images(batch, 64, 64, 3), images(batch, 64, 64, 1), "mse"


def autoencoder(batch: int) -> Case:
    """Strided and transposed convolutions."""
    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(3, 3, strides=2, padding="same", activation="sigmoid"),
        ]
    )
    x = images(batch, 64, 64, 3)
    return model, x, x, "mse"


def separable(batch: int) -> Case:
    """Separable convolutions, dropout, swish."""
    model = keras.Sequential(
        [
            keras.Input((64, 64, 3)),
            layers.Conv2D(24, 3, padding="same", activation="swish"),
            layers.SeparableConv2D(48, 3, padding="same", activation="swish"),
            layers.SpatialDropout2D(0.2),
            layers.SeparableConv2D(48, 3, padding="same", activation="swish"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    return model, images(batch, 64, 64, 3), labels(batch, 10), SPARSE


def mlp(batch: int) -> Case:
    """Three wide layers: weights, gradients and slots count most."""
    model = keras.Sequential([keras.Input((1024,))])
    for _ in range(3):
        model.add(layers.Dense(3072, activation="relu"))
    model.add(layers.Dense(10))
    return model, images(batch, 1024), images(batch, 10), "mse"


def mlp_smooth(batch: int) -> Case:
    """Layers whose activation needs its input for the gradient, with normalization and dropout."""
    model = keras.Sequential([keras.Input((512,))])
    for _ in range(4):
        model.add(layers.Dense(1024, activation="gelu"))
        model.add(layers.LayerNormalization())
        model.add(layers.Dropout(0.1))
    model.add(layers.Dense(1))
    return model, images(batch, 512), images(batch, 1), "mse"


def lstm(batch: int) -> Case:
    """Text: embedding and one LSTM."""
    model = keras.Sequential(
        [
            keras.Input((120,), dtype="int32"),
            layers.Embedding(8000, 96),
            layers.LSTM(128),
            layers.Dense(2, activation="softmax"),
        ]
    )
    return model, labels(batch, 8000, 120), labels(batch, 2), SPARSE


def gru_stack(batch: int) -> Case:
    """Two recurrent layers, one of them in both directions."""
    model = keras.Sequential(
        [
            keras.Input((100, 32)),
            layers.Bidirectional(layers.GRU(64, return_sequences=True)),
            layers.GRU(64),
            layers.Dense(1),
        ]
    )
    return model, images(batch, 100, 32), images(batch, 1), "mse"


def _attention_block(x: Any, width: int, heads: int) -> Any:
    a = layers.MultiHeadAttention(heads, width // heads)(x, x)
    x = layers.LayerNormalization()(x + a)
    f = layers.Dense(4 * width, activation="gelu")(x)
    return layers.LayerNormalization()(x + layers.Dense(width)(f))


def transformer(batch: int) -> Case:
    """Two blocks of attention over 128 positions."""
    given = keras.Input((128,), dtype="int32")
    x = layers.Embedding(4000, 128)(given)
    for _ in range(2):
        x = _attention_block(x, 128, 4)
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(given, layers.Dense(2, activation="softmax")(x))
    return model, labels(batch, 4000, 128), labels(batch, 2), SPARSE


def language_model(batch: int) -> Case:
    """A wide softmax over the vocabulary at each position."""
    given = keras.Input((64,), dtype="int32")
    x = layers.Embedding(8000, 128)(given)
    x = _attention_block(x, 128, 4)
    model = keras.Model(given, layers.Dense(8000, activation="softmax")(x))
    return model, labels(batch, 8000, 64), labels(batch, 8000, 64), SPARSE


def conv1d(batch: int) -> Case:
    """Signals with tanh, which its own output is enough for."""
    model = keras.Sequential(
        [
            keras.Input((1000, 8)),
            layers.Conv1D(64, 7, padding="same", activation="tanh"),
            layers.Conv1D(64, 7, padding="same", activation="tanh"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(1),
        ]
    )
    return model, images(batch, 1000, 8), images(batch, 1), "mse"


def conv3d(batch: int) -> Case:
    """Volumes."""
    model = keras.Sequential(
        [
            keras.Input((24, 24, 24, 1)),
            layers.Conv3D(16, 3, padding="same", activation="relu"),
            layers.Conv3D(32, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling3D(),
            layers.Dense(1),
        ]
    )
    return model, images(batch, 24, 24, 24, 1), images(batch, 1), "mse"


def vocabulary(batch: int) -> Case:
    """A table of 300,000 rows of which a batch uses few."""
    model = keras.Sequential(
        [
            keras.Input((20,), dtype="int32"),
            layers.Embedding(300_000, 64),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1),
        ]
    )
    return model, labels(batch, 300_000, 20), images(batch, 1), "mse"


def _mobile(batch: int, trainable: bool) -> Case:
    base = keras.applications.MobileNetV2(
        input_shape=(96, 96, 3), include_top=False, weights=None, pooling="avg"
    )
    base.trainable = trainable
    model = keras.Sequential(
        [keras.Input((96, 96, 3)), base, layers.Dense(5, activation="softmax")]
    )
    return model, images(batch, 96, 96, 3), labels(batch, 5), SPARSE


def mobile(batch: int) -> Case:
    """A nested model of many small layers."""
    return _mobile(batch, trainable=True)


def mobile_frozen(batch: int) -> Case:
    """The same with its weights frozen: nothing is kept for a backward pass."""
    return _mobile(batch, trainable=False)


def half_frozen(batch: int) -> Case:
    """The first half of the layers is frozen."""
    model, x, y, loss = cnn_photo(batch)
    for layer in model.layers[:3]:
        layer.trainable = False
    return model, x, y, loss


def frames(batch: int) -> Case:
    """A small network for each of ten frames, then an LSTM."""
    one = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
        ]
    )
    model = keras.Sequential(
        [
            keras.Input((10, 32, 32, 3)),
            layers.TimeDistributed(one),
            layers.LSTM(32),
            layers.Dense(1),
        ]
    )
    return model, images(batch, 10, 32, 32, 3), images(batch, 1), "mse"


def siamese(batch: int) -> Case:
    """One network used twice."""
    one = keras.Sequential(
        [
            keras.Input((48, 48, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(32),
        ]
    )
    a, b = keras.Input((48, 48, 3)), keras.Input((48, 48, 3))
    model = keras.Model([a, b], layers.Dense(1)(layers.Subtract()([one(a), one(b)])))
    return model, [images(batch, 48, 48, 3), images(batch, 48, 48, 3)], images(batch, 1), "mse"


def shapes_only(batch: int) -> Case:
    """Many layers that only rename or pad: little of it is kept."""
    given = keras.Input((64, 64, 8))
    x = layers.Dropout(0.0)(given)
    for _ in range(4):
        x = layers.Reshape((32, 128, 8))(x)
        x = layers.ZeroPadding2D(2)(x)
        x = layers.Cropping2D(2)(x)
        x = layers.Reshape((64, 64, 8))(x)
        x = layers.Add()([x, given])
    x = layers.Conv2D(8, 3)(x)
    model = keras.Model(given, layers.Dense(1)(layers.GlobalAveragePooling2D()(x)))
    return model, images(batch, 64, 64, 8), images(batch, 1), "mse"


def wide_input(batch: int) -> Case:
    """float64 inputs, which Keras converts as a whole, and almost no model."""
    model = keras.Sequential([keras.Input((4096,)), layers.Dense(8), layers.Dense(1)])
    return model, images(batch, 4096).astype("float64"), images(batch, 1), "mse"


def bytes_input(batch: int) -> Case:
    """Images as bytes, scaled in the model, from a tf.data pipeline."""
    model = keras.Sequential(
        [
            keras.Input((96, 96, 3), dtype="uint8"),
            layers.Rescaling(1 / 255),
            layers.RandomFlip(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(1),
        ]
    )
    x = labels(batch, 255, 96, 96, 3).astype("uint8")
    data = tf.data.Dataset.from_tensor_slices((x, images(batch, 1))).batch(batch).prefetch(1)
    return model, data, None, "mse"


def resnet_bfloat16(batch: int) -> Case:
    """Mixed precision."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    return resnet(batch)
