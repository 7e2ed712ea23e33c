"""Does the batch that the search names fit, and how long does the search take: ``python -m tests.benchmarks.batch_limit``.

A process in a memory group with a real limit searches the batch size for a model. Then a fresh process in the same group
trains six steps with that batch, and another one with 1.3 times as much: the first must live, the second should be killed.
``--beside PATH`` searches with the build of another checkout too, by its own ``.venv``, one after the other for each model. Needs the right to make memory groups.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
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
SAMPLES = 1 << 20
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
    parser.add_argument("--beside", type=Path, metavar="PATH", help="another checkout")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        mode, name, batch = chosen.child
        print(json.dumps(child(mode, name, int(batch))))
        return
    limit_bytes = int(chosen.limit_gib * GIB)
    with memory_limit(limit_bytes) as limit:
        if chosen.beside is None:
            alone(limit, limit_bytes, chosen.only)
        else:
            beside(limit, limit_bytes, chosen.only, chosen.beside)


def alone(limit: Any, limit_bytes: int, names: Sequence[str]) -> None:
    """Search with this build, and try more than it found."""
    held = killed = 0
    print(
        f"| model | batch | trials | found | used | {LARGER} times | search |\n|---|---|---|---|---|---|---|"
    )
    for name in names:
        found = search(limit, name, ROOT)
        fit, larger = used(limit, name, found), used(limit, name, found, LARGER)
        held, killed = held + (fit is not None), killed + (larger is None)
        how = "tried" if found.get("was_tried") else "extrapolated"
        print(
            f"| {name} | {found.get('batch_size')} | {found.get('trial_count')} | {how} | {share(fit, limit_bytes)} "
            f"| {share(larger, limit_bytes)} | {found['seconds']:.0f} s |",
            flush=True,
        )
    print(f"\n{held} of {len(names)} fit; {LARGER} times as much was killed in {killed}")


def beside(limit: Any, limit_bytes: int, names: Sequence[str], other: Path) -> None:
    """Search with another build and with this one, and train with what this one found; with the other batch if it is larger."""
    ratios, cpu_ratios, batches = [], [], []
    print(
        "| model | before: batch, trials, time, processor time | now | used | used before | time | processor time |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        before, now = (search(limit, name, build) for build in (other, ROOT))
        is_larger = (before.get("batch_size") or 0) > (now.get("batch_size") or 0)
        earlier = share(used(limit, name, before), limit_bytes) if is_larger else ""
        cells = [
            f"{one.get('batch_size')}, {one.get('trial_count')}, {one['seconds']:.0f} s, {one['cpu_seconds']:.0f} s"
            for one in (before, now)
        ]
        ratios.append(now["seconds"] / before["seconds"])
        cpu_ratios.append(now["cpu_seconds"] / before["cpu_seconds"])
        batches.append((now.get("batch_size") or 0) / (before.get("batch_size") or 1))
        part = share(used(limit, name, now), limit_bytes)
        print(
            f"| {name} | {' | '.join(cells)} | {part} | {earlier} | {ratios[-1]:.2f} | {cpu_ratios[-1]:.2f} |",
            flush=True,
        )
    rows = {"Time": ratios, "Processor time": cpu_ratios, "Batch size": batches}
    for what, found in rows.items():
        middle = statistics.median(found)
        print(f"{what}, now to before: median {middle:.2f} ({min(found):.2f} to {max(found):.2f}).")


def search(limit: Any, name: str, build: Path) -> dict[str, Any]:
    """What a search within the limit found, with its seconds, TensorFlow's import included; without a batch if it was killed."""
    began, before = time.monotonic(), os.times()
    found = run(limit, "search", name, START_BATCH, build) or {}
    after = os.times()
    # With the children's children that were waited for.
    cpu_seconds = sum(after[2:4]) - sum(before[2:4])
    return {**found, "seconds": time.monotonic() - began, "cpu_seconds": cpu_seconds}


def used(
    limit: Any, name: str, found: dict[str, Any], factor: float = 1.0
) -> dict[str, Any] | None:
    """A fit of the found batch in a fresh process within the limit; None if it was killed."""
    batch = found.get("batch_size")
    return run(limit, "fit", name, round(factor * batch), ROOT) if batch else None


def share(fit: dict[str, Any] | None, limit_bytes: int) -> str:
    """The part of the limit that a fit used at its peak."""
    return "killed" if fit is None else f"{fit['peak_bytes'] / limit_bytes:.0%}"


def run(limit: Any, mode: str, name: str, batch: int, build: Path) -> dict[str, Any] | None:
    """The result of one process within the limit; None if it was killed."""
    script = str(build / "tests" / "benchmarks" / "batch_limit.py")
    python = sys.executable if build == ROOT else build / ".venv" / "bin" / "python"
    try:
        return in_fresh_process(
            script, "--child", mode, name, str(batch), limit=limit, python=python
        )
    except Killed:
        return None


def child(mode: str, name: str, batch: int) -> dict[str, Any]:
    """Search or train in this process, once it is in its group."""
    sys.stdin.readline()
    import tensorflow as tf

    from tests.benchmarks.prediction_models import case

    model, arrays = case(name, 16, "adam")
    x, y = tf.constant(arrays["x"]), tf.constant(arrays["y"])
    # More samples than any batch has: none is suggested that is larger than the data.
    samples = tf.data.Dataset.range(SAMPLES).map(lambda n: (x[n % len(x)], y[n % len(y)]))
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
