"""What following a training loop costs: ``python -m tests.benchmarks.loop_reader``.

A loop runs in blocks of two seconds, by turns with and without a reader that ticks ten times a second as in a kernel. Printed for an
eager step and for a step in a ``tf.function``: the processor time of the reader as a part of one core, and the median of the
ratios of step times, each block against the mean of its neighbours.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from jupyter_tfguard.training.loops import LoopReader
from jupyter_tfguard.training.progress import ProgressBoard

BLOCKS = 41
BLOCK_SECONDS = 2.0
TICK_SECONDS = 0.1


class Ticker:
    """The sampling thread, with the processor time that it has spent in the reader."""

    def __init__(self, reader: LoopReader, board: ProgressBoard) -> None:
        self._reader, self._board = reader, board
        self.is_on = False
        self.cpu_seconds = self.on_seconds = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(TICK_SECONDS)
            if self.is_on:
                self.on_seconds += TICK_SECONDS
                began = time.thread_time()
                self._reader.tick()
                self._board.flush()
                self.cpu_seconds += time.thread_time() - began


def block(step: Callable[[], Any]) -> float:
    """Seconds of a step, over one block."""
    began, count = time.monotonic(), 0
    while time.monotonic() - began < BLOCK_SECONDS:
        step()
        count += 1
    return (time.monotonic() - began) / count


def main() -> int:
    """Measure and print."""
    import keras
    import tensorflow as tf

    board = ProgressBoard(lambda record: None)
    reader = LoopReader(lambda kind, **fields: None, board, itertools.count(1), dict)
    reader.attach(keras)
    ticker = Ticker(reader, board)
    x = tf.random.uniform((64, 400))
    for name, wrap in (("eager", lambda function: function), ("tf.function", tf.function)):
        layers = [keras.layers.Dense(400, activation="relu") for _ in range(6)]
        model = keras.Sequential([keras.layers.Input((400,)), *layers])
        optimizer = keras.optimizers.Adam()

        def one_step(model: Any = model, optimizer: Any = optimizer) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2)
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

        step = wrap(one_step)
        reader.cell_begins()
        block(step)
        times = []
        ticker.cpu_seconds = ticker.on_seconds = 0.0
        for number in range(BLOCKS):
            ticker.is_on = number % 2 == 1
            times.append(block(step))
        ticker.is_on = False
        ratios = [2 * times[n] / (times[n - 1] + times[n + 1]) for n in range(1, BLOCKS - 1, 2)]
        share = ticker.cpu_seconds / ticker.on_seconds
        print(
            f"{name}: step {1000 * statistics.median(times):.2f} ms, reader {100 * share:.3f} % of a core, "
            f"time with / without {statistics.median(ratios):.4f} ({len(ratios)} pairs, {min(ratios):.3f} to {max(ratios):.3f})"
        )
        reader.cell_ends(None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
