"""How well a trial measures the memory of a fit: ``python -m tests.benchmarks.trials [--only NAME...] [--runs 3]``.

The truth is the highest anonymous memory (RssAnon) during a ``fit`` of six steps minus that before it, in a fresh process: the
median of three. Each is compared with one trial, made by another fresh process for the same model and data.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

from tests.benchmarks import bound
from tests.benchmarks.bound import MIB, ROOT, fit_bytes, in_fresh_process

# Batch size for each model of bound_models.py, and for `custom_step` below.
CASES = {name: batches[0] for name, (batches, _) in bound.CASES.items()} | {"custom_step": 64}
STEPS = 6


def custom_step(batch: int) -> Any:
    """A subclass with a training step and a layer of its own, both defined in ``__main__``."""
    import keras
    import tensorflow as tf
    from keras import layers

    from tests.benchmarks.bound_models import SPARSE, images, labels

    class Scale(layers.Layer):
        def build(self, shape: Any) -> None:
            self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")

        def call(self, x: Any) -> Any:
            return x * self.factor

    class Halves(keras.Model):
        """Two half batches for each step."""

        def __init__(self) -> None:
            super().__init__()
            self.blocks = [
                part
                for width in (32, 64)
                for part in (
                    layers.Conv2D(width, 3, activation="relu"),
                    Scale(),
                    layers.MaxPooling2D(),
                )
            ]
            self.head = keras.Sequential([layers.Flatten(), layers.Dense(10, activation="softmax")])

        def call(self, x: Any, training: bool = False) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.head(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            half = tf.shape(x)[0] // 2
            total = 0.0
            for part in (slice(None, half), slice(half, None)):
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y[part], y_pred=self(x[part], training=True))
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(
                    zip(gradients, self.trainable_variables, strict=True)
                )
                total += loss
            return {"loss": total}

    return Halves(), images(batch, 64, 64, 3), labels(batch, 10), SPARSE


def child(name: str, mode: str) -> dict[str, Any]:
    """Measure one case in this process, by a fit or by a trial."""
    from jupyter_tfguard.predict.trial import trial
    from tests.benchmarks import bound_models

    bound_models.STEPS = STEPS
    batch = CASES[name]
    make = custom_step if name == "custom_step" else getattr(bound_models, name)
    model, x, y, loss = make(batch)
    model.compile(optimizer="adam", loss=loss)
    arguments = {"x": x, "y": y}
    if mode == "trial":
        found = trial(model, arguments, batch, steps=STEPS)
        return {"bytes": found.peak_bytes, "ending": f"{found.ending.value} {found.reason}"}
    size = None if y is None else batch
    return {"bytes": fit_bytes(model, arguments | {"batch_size": size})}


def measured(name: str, mode: str) -> dict[str, Any]:
    """The same in a fresh process."""
    return in_fresh_process("-m", "tests.benchmarks.trials", "--child", name, mode, cwd=ROOT)


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), metavar="NAME")
    parser.add_argument("--runs", type=int, default=3, help="fits of each case; the median counts")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(child(*chosen.child)))
        return
    errors = []
    print(f"{'case':16}{'batch':>6}{'trial':>8}{'truth':>8}{'error':>8}{'spread':>8}  MiB, percent")
    for name in chosen.only:
        truths = [measured(name, "fit")["bytes"] for _ in range(chosen.runs)]
        row = measured(name, "trial")
        if row["bytes"] is None:
            print(f"{name:16} {row['ending']}", flush=True)
            continue
        truth = statistics.median(truths)
        errors.append(100 * (row["bytes"] / truth - 1))
        spread = 100 * (max(truths) - min(truths)) / truth
        print(
            f"{name:16}{CASES[name]:6}{row['bytes'] / MIB:8.0f}{truth / MIB:8.0f}"
            f"{errors[-1]:+8.1f}{spread:8.1f}  {row['ending']}",
            flush=True,
        )
    sizes = sorted(abs(error) for error in errors)
    p90 = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
    print(f"{len(sizes)} cases: median error {statistics.median(sizes):.1f} %, p90 {p90:.1f} %")


if __name__ == "__main__":
    main()
