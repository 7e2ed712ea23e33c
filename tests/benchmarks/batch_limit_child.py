"""A process of ``batch_limit.py``: ``batch_limit_child.py BUILD MODE MODEL BATCH`` searches or trains with the build of a checkout.

The clock runs during the call of the search only: a notebook has imported TensorFlow and built the model before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

SAMPLES = 1 << 20
STEPS = 6


def main(build: str, mode: str, name: str, batch: int) -> None:
    """Print the result as JSON, once a line on standard input says that the process is in its memory group."""
    sys.path.insert(0, build)
    sys.stdin.readline()
    print(json.dumps({"search": searched, "fit": fitted}[mode](*case(name, batch))))


def case(name: str, batch: int) -> tuple[Any, dict[str, Any]]:
    """A model, and the arguments of fit. There are more samples than any batch has: none is suggested that is larger."""
    import tensorflow as tf

    from tests.benchmarks import prediction_models

    model, arrays = prediction_models.case(name, 16, "adam")
    x, y = tf.constant(arrays["x"]), tf.constant(arrays["y"])
    samples = tf.data.Dataset.range(SAMPLES).map(lambda n: (x[n % len(x)], y[n % len(y)]))
    return model, {"x": samples.batch(batch).prefetch(tf.data.AUTOTUNE), "steps_per_epoch": STEPS}


def searched(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the search found, with its seconds and the processor time of all its processes."""
    from jupyter_tfguard.predict.estimate import find_batch_size

    began, before = time.perf_counter(), os.times()
    found = find_batch_size(model, arguments)
    seconds, after = time.perf_counter() - began, os.times()
    return {
        "batch_size": found.batch_size,
        "was_tried": found.was_tried,
        "trial_count": len(found.trials),
        "seconds": seconds,
        "cpu_seconds": sum(after[:4]) - sum(before[:4]),
    }


def fitted(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The peak of the anonymous memory of this process, which trains some steps."""
    from jupyter_tfguard.collectors.resident import anonymous_bytes
    from tests.benchmarks.bound import fit_bytes

    before = anonymous_bytes(os.getpid())
    return {"peak_bytes": before + fit_bytes(model, arguments)}


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
