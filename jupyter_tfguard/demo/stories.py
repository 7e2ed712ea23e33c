"""The crashes of the demo: the introduction, the cells to run, and the limits."""

from __future__ import annotations

from dataclasses import dataclass

from ..units import GIB, human_bytes

# Measured with TensorFlow 2.21 on CPU: 0.6 GiB for Python and TensorFlow; the images, plus twice their size while Keras
# copies them; then about 6 GiB for the first step of batch size 2048. So 10,000 images and 6 GiB reach that step.
LIMIT_BYTES = 6 * GIB
SMALLEST_LIMIT_BYTES = 5 * GIB // 2
_IMAGE_COUNT = 10_000
_BATCH_SIZE = 2048

_CNN_DATA = """\
import numpy as np
rng = np.random.default_rng(0)
images = rng.random(({count}, 100, 100, 3), dtype=np.float32)
labels = rng.integers(0, 10, {count})
"""

_CNN_MODEL = """\
import tensorflow as tf
model = tf.keras.Sequential([
    tf.keras.layers.Input((100, 100, 3)),
    tf.keras.layers.Conv2D(32, (3, 3), activation="relu"),
    tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dense(10, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
"""

_CNN_FIT = "history = model.fit(images, labels, batch_size=2048, epochs=5)"


@dataclass(frozen=True)
class DemoCrash:
    """One crash.

    Attributes:
        name: File name of its notebook, without the extension.
        intro: What is about to happen.
        cells: Run in sequence; the last cell does not return.
        limit_bytes: Memory limit to set for the kernel before the cells run; None = none.
        seconds_limit: Timeout.
    """

    name: str
    intro: str
    cells: tuple[str, ...]
    limit_bytes: int | None = None
    seconds_limit: float = 60.0


def memory_story(limit_bytes: int) -> DemoCrash:
    """A typical program from forum posts, with a memory limit that is too low for its batch size."""
    # A smaller limit leaves room for less data; the first step must still be reached.
    share = (limit_bytes - SMALLEST_LIMIT_BYTES) / (LIMIT_BYTES - SMALLEST_LIMIT_BYTES)
    count = max(_BATCH_SIZE, int(_IMAGE_COUNT * min(1.0, share)))
    return DemoCrash(
        name="train-cnn",
        intro=f"A small CNN, batch size 2048, in a kernel that may use {human_bytes(limit_bytes)}. "
        "tfguard would stop it; that is paused.",
        cells=("%tfguard pause", _CNN_DATA.format(count=count), _CNN_MODEL, _CNN_FIT),
        limit_bytes=limit_bytes,
        seconds_limit=240.0,
    )


XLA_TYPO = DemoCrash(
    name="xla-flag",
    intro="A typo in XLA_FLAGS: TensorFlow's compiler prints one line and ends the process.",
    cells=(
        'import os\nos.environ["XLA_FLAGS"] = "--xla_force_host_platform_devices=2"',
        "import tensorflow as tf\n@tf.function(jit_compile=True)\ndef double(x):\n    return x + x\ndouble(tf.ones(3))",
    ),
    seconds_limit=120.0,
)
NULL_POINTER = DemoCrash(
    name="null-pointer",
    intro="Native code reads address 0.",
    cells=("import ctypes\n\ndef poke(address):\n    return ctypes.string_at(address)\n\npoke(0)",),
)
KILL_9 = DemoCrash(
    name="kill-9",
    intro="The kernel receives SIGKILL while plenty of memory is free.",
    cells=("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",),
)
