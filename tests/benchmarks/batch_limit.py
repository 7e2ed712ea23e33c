"""Does the batch that the search names fit, and a larger one not: ``python -m tests.benchmarks.batch_limit [--limit-gib 4]``.

A process in a memory group with a real limit searches the batch size for a model. Then a fresh process in the same group
trains six steps with that batch, and another one with 1.3 times as much: the first must live, the second should be killed.
Needs the right to make memory groups.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from jupyter_tfguard.collectors.resident import anonymous_bytes  # noqa: E402
from jupyter_tfguard.units import GIB  # noqa: E402
from tests.benchmarks.bound import Killed, fit_bytes, in_fresh_process  # noqa: E402
from tests.crash.settings import memory_limit  # noqa: E402

LARGER = 1.3
START_BATCH = 32
# Of prediction_models.py.
MODELS = (
    "autoencoder",
    "cnn_flat",
    "cnn_photo",
    "conv1d",
    "conv3d",
    "convlstm",
    "custom_step",
    "gru_stack",
    "lstm",
    "resnet",
    "separable",
    "subclassed",
    "transformer",
    "unet",
    "vit",
)
STEPS = 6


def main() -> None:
    """Search and verify for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=MODELS, metavar="NAME")
    parser.add_argument("--limit-gib", type=float, default=4.0)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        mode, name, batch = chosen.child
        print(json.dumps(child(mode, name, int(batch))))
        return
    held = killed = 0
    times = f"{LARGER} times"
    print(f"{'model':13}{'batch':>7}{'trials':>7}  {'found':13}{'used':>8}{times:>10}   search")
    with memory_limit(int(chosen.limit_gib * GIB)) as limit:
        for name in chosen.only:
            began = time.monotonic()
            found = run(limit, "search", name, START_BATCH)
            seconds = time.monotonic() - began
            if found is None or not found["batch_size"]:
                print(
                    f"{name:13} the search was killed" if found is None else f"{name:13} none fits"
                )
                continue
            batch = found["batch_size"]
            fit = run(limit, "fit", name, batch)
            larger = run(limit, "fit", name, round(LARGER * batch))
            held, killed = held + (fit is not None), killed + (larger is None)
            how = "tried" if found["was_tried"] else "extrapolated"
            print(
                f"{name:13}{batch:7}{found['trial_count']:7}  {how:13}{share(fit, chosen)}"
                f"{share(larger, chosen)}{seconds:7.0f} s",
                flush=True,
            )
    print(f"{held} of {len(chosen.only)} fit; {LARGER} times as much was killed in {killed}")


def share(fit: dict[str, Any] | None, chosen: argparse.Namespace) -> str:
    """The part of the limit that a fit used at its peak."""
    part = "killed" if fit is None else f"{fit['peak_bytes'] / (chosen.limit_gib * GIB):.0%}"
    return f"{part:>9}"


def run(limit: Any, mode: str, name: str, batch: int) -> dict[str, Any] | None:
    """The result of one process within the limit; None if it was killed."""
    try:
        return in_fresh_process(__file__, "--child", mode, name, str(batch), limit=limit)
    except Killed:
        return None


def child(mode: str, name: str, batch: int) -> dict[str, Any]:
    """Search or train in this process, once it is in its group."""
    sys.stdin.readline()
    import tensorflow as tf

    from tests.benchmarks.prediction_models import case

    model, arrays = case(name, 16, "adam")
    samples = tf.data.Dataset.from_tensor_slices((arrays["x"], arrays["y"])).repeat()
    arguments = {"x": samples.batch(batch).prefetch(tf.data.AUTOTUNE), "steps_per_epoch": STEPS}
    if mode == "fit":
        before = anonymous_bytes(os.getpid())
        return {"peak_bytes": before + fit_bytes(model, arguments)}
    from jupyter_tfguard.predict.estimate import find_batch_size

    found = find_batch_size(model, arguments)
    return {
        "batch_size": found.batch_size,
        "was_tried": found.was_tried,
        "trial_count": len(found.trials),
    }


if __name__ == "__main__":
    main()
