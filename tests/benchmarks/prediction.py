"""How good the prediction of the memory of ``fit`` is: ``python -m tests.benchmarks.prediction [--quick-only] [--json]``.

The truth is the peak of the anonymous memory (RssAnon) during six steps of ``fit`` minus that just before. Every run has
a fresh process: the median of three runs is the truth, and the prediction is computed in another process, so that it
cannot change the truth. ``--truths FILE`` keeps what was measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import runpy
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.bound import fit_bytes, in_fresh_process, status_bytes  # noqa: E402

# Optimizer and batches of each model of prediction_models.py and bound_models.py.
CASES: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {
    "autoencoder": (("adam", (100, 320)),),
    "bytes_input": (("adam", (100,)),),
    "cnn_flat": (("adam", (100, 384)), ("sgd", (200,))),
    "cnn_photo": (("adam", (48,)), ("rmsprop", (150,))),
    "conv1d": (("adam", (300,)),),
    "conv3d": (("adam", (50, 160)),),
    "conv_float16": (("adam", (100,)),),
    "conv_wide": (("sgd", (90,)),),
    "convlstm": (("adam", (60,)),),
    "custom_step": (("adam", (150, 400)),),
    "densenet121": (("sgd", (24,)),),
    "frames": (("adam", (50,)),),
    "gru_stack": (("adam", (400,)),),
    "language_model": (("adamw", (40, 96)),),
    "lstm": (("adam", (256,)), ("sgd", (600,))),
    "mlp": (("adam", (500,)),),
    "mlp_bn": (("adam", (3000,)),),
    "mlp_smooth": (("adam", (3000,)),),
    "mlp_wide": (("adam", (512,)), ("sgd", (512,))),
    "mobile": (("adam", (40,)),),
    "multi_in": (("rmsprop", (200, 500)),),
    "resnet": (("adam", (128, 360)), ("sgd", (200,))),
    "resnet50": (("sgd", (20,)),),
    "resnet_bfloat16": (("adam", (200,)),),
    "rnn_masked": (("adam", (200,)),),
    "separable": (("rmsprop", (48, 150)),),
    "siamese": (("adam", (150,)),),
    "subclassed": (("adam", (128, 300)),),
    "transformer": (("adamw", (24, 90)),),
    "unet": (("adam", (32, 75)),),
    "vgg16": (("sgd", (40,)),),
    "vit": (("adam", (48, 150)),),
    "vocabulary": (("adam", (1000,)),),
    "while_layer": (("adam", (3000,)),),
}
RUNS = 3
BASELINES = ("parameters", "layers", "liveness")
MB = 1_000_000
Key = tuple[str, str, int]


def main() -> None:
    """Measure the cases and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick-only", action="store_true", help="without the trial process")
    parser.add_argument("--only", nargs="*", default=list(CASES), metavar="NAME")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each truth; the median counts")
    parser.add_argument("--truths", type=Path, help="file that keeps the measured truths")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--model", metavar="FILE.py:FUNCTION", help="a model from outside")
    parser.add_argument("--batch", type=int, help="batch size for --model")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        mode, *key, batch = chosen.child
        print(json.dumps(child(mode, (key[0], key[1], int(batch)))))
        return
    keys = [(chosen.model, "its own", chosen.batch)] if chosen.model else list(cases(chosen.only))
    kept = json.loads(chosen.truths.read_text()) if chosen.truths and chosen.truths.exists() else {}
    rows = []
    for key in keys:
        truths = kept.setdefault(" ".join(map(str, key)), [])
        while len(truths) < chosen.runs:
            truths.append(in_process("fit", key)["truth_bytes"])
            if chosen.truths:
                chosen.truths.write_text(json.dumps(kept, indent=1))
        rows.append(row(key, int(statistics.median(truths)), in_process("quick", key)))
        if not chosen.json:
            print_row(rows[-1], with_header=len(rows) == 1)
    print(json.dumps(summary(rows), indent=1) if chosen.json else text(rows))


def cases(names: list[str]) -> Iterator[Key]:
    """Every case of these models."""
    for name in names:
        for optimizer, batches in CASES[name]:
            yield from ((name, optimizer, batch) for batch in batches)


def child(mode: str, key: Key) -> dict[str, Any]:
    """Measure one case in this process: its truth, or its prediction."""
    name, optimizer, batch = key
    if ":" in name:
        file, _, function = name.rpartition(":")
        model, arguments = runpy.run_path(file)[function](batch)
    else:
        from tests.benchmarks.prediction_models import case

        model, arguments = case(name, batch, optimizer)
    return truth(model, arguments) if mode == "fit" else quick(model, arguments, batch)


def truth(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Peak of the anonymous memory during ``fit`` minus that before it."""
    return {"truth_bytes": fit_bytes(model, arguments)}


def in_process(mode: str, key: Key) -> dict[str, Any]:
    """The same in a fresh process."""
    return in_fresh_process(__file__, "--child", mode, *map(str, key))


def quick(model: Any, arguments: dict[str, Any], batch: int) -> dict[str, Any]:
    """The prediction, its time and memory, and simpler predictions to compare it with."""
    from jupyter_tfguard.predict.quick import QuickPrediction
    from jupyter_tfguard.predict.sizes import leaves, variable_bytes

    before = status_bytes("RssAnon")
    began = time.perf_counter()
    prediction = QuickPrediction(model, arguments)
    found = prediction.at(batch)
    seconds = time.perf_counter() - began
    weights = sum(variable_bytes(one) for one in model.trainable_weights)
    outputs = [
        tensor
        for layer in model._flatten_layers()
        for node in getattr(layer, "_inbound_nodes", ())
        for tensor in leaves(node.output_tensors)
    ]
    of_layers = sum(4 * math.prod(size or 1 for size in one.shape[1:]) for one in outputs)
    return dataclasses.asdict(found) | {
        "parameters_bytes": weights + found.slots_bytes,
        "layers_bytes": 2 * of_layers * found.batch_size + weights + found.slots_bytes,
        "liveness_bytes": prediction.features(found.batch_size).live_bytes,
        "features": dataclasses.asdict(prediction.features(found.batch_size)),
        "quick_seconds": seconds,
        "quick_memory_bytes": status_bytes("RssAnon") - before,
    }


def row(key: Key, truth_bytes: int, found: dict[str, Any]) -> dict[str, Any]:
    """One case, with the relative error of every prediction."""
    errors = {name: found[f"{name}_bytes"] / truth_bytes - 1 for name in (*BASELINES, "best")}
    errors["quick"] = errors.pop("best")
    return {
        "case": " ".join(map(str, key)),
        "truth_bytes": truth_bytes,
        **found,
        **{f"{name}_error": error for name, error in errors.items()},
        "is_below_high": truth_bytes <= found["high_bytes"],
        "measured_bytes": None,
        "extrapolated_bytes": None,
    }


def with_left_out(rows: list[dict[str, Any]]) -> list[float]:
    """Errors of the estimate when its constants are fitted without the model of the case."""
    import numpy as np

    names = [one["case"].split()[0] for one in rows]
    truths = np.array([one["truth_bytes"] for one in rows], float)
    features = [one["features"] for one in rows]
    copies = np.array([one["copies_bytes"] for one in features], float)
    columns = ("pool_bytes", "small_bytes", "node_count", "batch_bytes")
    table = np.array([[*(one[name] for name in columns), 1e6] for one in features], float)
    table /= truths[:, None]
    wanted = 1 - copies / truths
    errors = []
    for name in names:
        others = np.array([one != name for one in names])
        weights = np.ones(others.sum())
        for _ in range(50):  # least absolute errors by weighted least squares
            given = table[others] * weights[:, None]
            constants, *_ = np.linalg.lstsq(given, wanted[others] * weights, rcond=None)
            missed = np.abs(table[others] @ constants - wanted[others])
            weights = 1 / np.sqrt(np.maximum(missed, 0.03))
        errors.append(float(table[len(errors)] @ constants - wanted[len(errors)]))
    return errors


def quantile(values: list[float], fraction: float) -> float | None:
    """The smallest value that at least this fraction of the values does not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(fraction * len(ordered)) - 1] if ordered else None


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Median and 90th percentile of the errors, and the share of truths below the upper end."""
    errors = [abs(one["quick_error"]) for one in rows]
    return {
        "cases": len(rows),
        "median_error": None,
        "p90_error": None,
        "inside_range": sum(one["is_below_high"] for one in rows) / len(rows),
        "quick_median_error": quantile(errors, 0.5),
        "quick_p90_error": quantile(errors, 0.9),
        "extrapolated_median_error": None,
        "per_case": rows,
    }


def print_row(one: dict[str, Any], *, with_header: bool) -> None:
    """Print one line of the table."""
    if with_header:
        print(
            f"{'case':26}{'truth':>7}{'quick':>7}{'high':>7}  MB; error of quick, parameters, ..."
        )
    sizes = "".join(f"{one[f'{name}_bytes'] / MB:7.0f}" for name in ("truth", "best", "high"))
    errors = "".join(f"{one[f'{name}_error']:+9.0%}" for name in ("quick", *BASELINES))
    cost = f"{one['quick_seconds']:6.1f} s{one['quick_memory_bytes'] / MB:6.0f} MB"
    unknown = ", ".join(one["unknown"][:4])
    print(f"{one['case']:26}{sizes}{errors}{cost}  {unknown}", flush=True)


def text(rows: list[dict[str, Any]]) -> str:
    """The summary, in words."""
    lines = [f"{len(rows)} cases; truth below the upper end: {summary(rows)['inside_range']:.0%}"]
    for name in ("quick", *BASELINES):
        errors = [abs(one[f"{name}_error"]) for one in rows]
        lines.append(f"{name}: median {quantile(errors, 0.5):.1%}, p90 {quantile(errors, 0.9):.1%}")
    if len({one["case"].split()[0] for one in rows}) > 5:  # as many as there are constants
        errors = [abs(one) for one in with_left_out(rows)]
        lines.append(
            "quick, constants fitted without the model: "
            f"median {quantile(errors, 0.5):.1%}, p90 {quantile(errors, 0.9):.1%}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
