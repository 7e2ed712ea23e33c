"""How good the bound before ``fit`` is: ``python -m tests.bench.bound [--only NAME...] [--json FILE] [--truths FILE]``.

Every case runs in a fresh process: the model is built and compiled, the bound is worked out, then ``fit`` makes six
steps or so. The truth is the highest anonymous memory (RssAnon) during ``fit`` minus that before it: what an out-of-memory killer
counts. Memory that TensorFlow's pool and malloc hold free before the fit is used first, so the bound is compared with the
truth plus that memory.

``--truths FILE`` keeps what was measured and measures only what is not in it yet: after a change of the bound only the
models are built again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from jupyter_tfguard.collectors.resident import anonymous_bytes, anonymous_peak_bytes  # noqa: E402
from jupyter_tfguard.predict.own_memory import uses_gpu  # noqa: E402

MIB = 1 << 20
# Batches and optimizers for each model of bound_models.py.
CASES = {
    "cnn_flat": ((96, 384), ("adam", "sgd")),
    "cnn_photo": ((48, 160), ("adam",)),
    "resnet": ((128, 448), ("adam", "sgd")),
    "unet": ((32, 100), ("adam",)),
    "autoencoder": ((96, 320), ("adam",)),
    "separable": ((48, 160), ("rmsprop",)),
    "mlp": ((64, 4000), ("adam", "sgd")),
    "mlp_smooth": ((1000, 5000), ("adam",)),
    "lstm": ((128, 400), ("adam",)),
    "gru_stack": ((128, 400), ("adam",)),
    "transformer": ((24, 80), ("adamw",)),
    "language_model": ((32, 96), ("adam",)),
    "conv1d": ((128, 400), ("adam",)),
    "conv3d": ((48, 160), ("adam",)),
    "vocabulary": ((512,), ("adam", "sgd")),
    "mobile": ((16, 56), ("adam",)),
    "mobile_frozen": ((64, 400), ("adam",)),
    "half_frozen": ((160,), ("adam",)),
    "frames": ((24, 80), ("adam",)),
    "siamese": ((64, 200), ("adam",)),
    "shapes_only": ((512,), ("adam",)),
    "wide_input": ((2000, 8000), ("adam",)),
    "bytes_input": ((32, 100), ("adam",)),
    "resnet_bfloat16": ((200,), ("adam",)),
}


_NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
_GROWTH = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}


def fit_bytes(model: Any, arguments: dict[str, Any]) -> int:
    """Run a fit. The highest memory meanwhile minus that before it: in tensors on the first GPU if there is one, else
    anonymous memory.
    """
    if uses_gpu():
        memory = sys.modules["tensorflow"].config.experimental
        memory.reset_memory_stats("GPU:0")
        before = memory.get_memory_info("GPU:0")["current"]
        model.fit(**arguments, verbose=0)
        return int(memory.get_memory_info("GPU:0")["peak"]) - int(before)
    pid = os.getpid()
    before = anonymous_bytes(pid)
    Path("/proc/self/clear_refs").write_text("5")
    model.fit(**arguments, verbose=0)
    return anonymous_peak_bytes(pid) - before


class Killed(Exception):
    """A process reached its memory limit."""


def in_fresh_process(
    *words: str,
    cwd: Path | None = None,
    limit: Any = None,
    gpu: bool = False,
    python: str | Path = sys.executable,
) -> dict[str, Any]:
    """Run Python with these words; the JSON object that it prints last.

    Args:
        words: Script or module, and its arguments.
        cwd: Working folder.
        limit: Memory limit that the process joins. It then gets a line on standard input, and must wait for it.
        gpu: Let it see the GPUs.
        python: The interpreter.

    Raises:
        Killed: It was killed within the limit.
        SystemExit: It failed.
    """
    process = subprocess.Popen(
        [str(python), *words],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | (_GROWTH if gpu else _NO_GPU),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if limit is not None:
        limit.add(process.pid)
    said, errors = process.communicate("begin\n")
    if limit is not None and process.returncode == -signal.SIGKILL:
        raise Killed
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)}: {errors[-2000:]}")
    row: dict[str, Any] = json.loads(said.splitlines()[-1])
    return row


def child(name: str, batch: int, optimizer: str, *, with_fit: bool) -> dict[str, Any]:
    """Measure one case in this process."""
    from jupyter_tfguard.predict.bound.bound import bound
    from jupyter_tfguard.predict.own_memory import reusable_bytes
    from jupyter_tfguard.training.plan import FitPlan
    from tests.bench import bound_models

    model, x, y, loss = getattr(bound_models, name)(batch)
    model.compile(optimizer=optimizer, loss=loss)
    arguments = {"x": x, "y": y, "batch_size": None if y is None else batch, "epochs": 2}
    began = time.perf_counter()
    found = bound(model, FitPlan.of(arguments))
    seconds = time.perf_counter() - began
    row = {
        "bound": found.total_bytes,
        "parts": found.parts(),
        "unknown": list(found.unknown),
        "bound_seconds": seconds,
        "reusable": reusable_bytes(),
    }
    if not with_fit:
        return row
    before = anonymous_bytes(os.getpid())
    return row | {"truth": fit_bytes(model, arguments), "before": before}


def measured(name: str, batch: int, optimizer: str, *, with_fit: bool) -> dict[str, Any]:
    """The same in a fresh process."""
    mode = "fit" if with_fit else "bound"
    return in_fresh_process(__file__, "--child", name, str(batch), optimizer, mode)


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--runs", type=int, default=1, help="of each case; the median counts")
    parser.add_argument("--truths", type=Path, help="file that keeps the measured truths")
    parser.add_argument("--json", type=Path, help="file for the rows")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        name, batch, optimizer, mode = chosen.child
        print(json.dumps(child(name, int(batch), optimizer, with_fit=mode == "fit")))
        return
    kept = json.loads(chosen.truths.read_text()) if chosen.truths and chosen.truths.exists() else {}
    rows = []
    print(f"{'case':34}{'bound':>8}{'truth':>8}{'free':>7}{'ratio':>7}{'ms':>6}  MiB; unknown")
    for name, batch, optimizer in cases(chosen.only or list(CASES)):
        key = f"{name} {batch} {optimizer}"
        truths = kept.setdefault(key, [])
        row = {}
        while len(truths) < chosen.runs:
            row = measured(name, batch, optimizer, with_fit=True)
            truths.append({k: row[k] for k in ("truth", "reusable")})
            if chosen.truths:
                chosen.truths.write_text(json.dumps(kept))
        row = row or measured(name, batch, optimizer, with_fit=False)
        row["case"] = key
        row["truth"] = statistics.median(one["truth"] for one in truths)
        row["reusable"] = statistics.median(one["reusable"] for one in truths)
        row["ratio"] = row["bound"] / (row["truth"] + row["reusable"])
        rows.append(row)
        sizes = "".join(
            f"{row[k] / MIB:{w}.0f}" for k, w in (("bound", 8), ("truth", 8), ("reusable", 7))
        )
        print(
            f"{key:34}{sizes}{row['ratio']:7.2f}{row['bound_seconds'] * 1000:6.1f}  {', '.join(row['unknown'])}",
            flush=True,
        )
    summary(rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


def cases(names: list[str]) -> Iterator[tuple[str, int, str]]:
    """Every case of these models."""
    for name in names:
        for batch, optimizer in itertools.product(*CASES[name]):
            yield name, batch, optimizer


def summary(rows: list[dict[str, Any]]) -> None:
    """Print median, spread, and what a refusal at these truths would have done."""
    ratios = sorted(row["ratio"] for row in rows)
    tenths = statistics.quantiles(ratios, n=10) if len(ratios) > 1 else ratios * 9
    print(
        f"{len(rows)} cases, bound / truth: median {statistics.median(ratios):.2f}, "
        f"10th to 90th percentile {tenths[0]:.2f} to {tenths[-1]:.2f}, highest {ratios[-1]:.2f}; "
        f"longest {max(row['bound_seconds'] for row in rows) * 1000:.0f} ms"
    )


if __name__ == "__main__":
    main()
