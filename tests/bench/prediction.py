"""How good the prediction of the memory of ``fit`` is: ``python -m tests.bench.prediction [--quick-only | --gpu] [--json]``.

The truth is the peak of the anonymous memory (RssAnon) during six steps of ``fit`` minus that just before. Every run has
a fresh process: the median of three runs is the truth, and the predictions are computed in other processes, so that they
cannot change the truth. ``--truths FILE`` keeps what was measured.

``--gpu`` measures memory in tensors on the first GPU instead, in several processes at a time. There is no quick estimate.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import runpy
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from jupyter_tfguard.collectors.resident import anonymous_bytes  # noqa: E402
from jupyter_tfguard.predict.answer import Grade  # noqa: E402
from tests.bench.bound import fit_bytes, in_fresh_process  # noqa: E402

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
# Of prediction_unseen.py.
UNSEEN: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {
    "bilstm_attention": (("adam", (96,)),),
    "cnn_decayed": (("sgd", (160,)),),
    "convnext": (("adamw", (40,)),),
    "efficientnet": (("adam", (24,)),),
    "generator": (("adam", (64,)),),
    "mixer": (("adamw", (96,)),),
    "mobilenet_v3": (("rmsprop", (48,)),),
    "segmentation": (("adam", (24,)),),
    "seq2seq": (("adam", (192,)),),
    "tabular": (("rmsprop", (16384,)),),
    "text_cnn": (("adam", (256,)),),
    "two_towers": (("adam", (8192,)),),
    "vae": (("adam", (192,)),),
    "wavenet": (("adam", (32,)),),
}
RUNS = 3
BASELINES = ("parameters", "layers", "grappler", "liveness")
_SHOWN = ("measured", "extrapolated", "quick", *BASELINES)
MB = 1_000_000
Key = tuple[str, str, int]


def main() -> None:
    """Measure the cases and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick-only", action="store_true", help="without the trial process")
    parser.add_argument("--only", nargs="*", default=list(CASES), metavar="NAME")
    parser.add_argument("--unseen", action="store_true", help="the models of prediction_unseen.py")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each truth; the median counts")
    parser.add_argument("--truths", type=Path, help="file that keeps the measured truths")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--model", metavar="FILE.py:FUNCTION", help="a model from outside")
    parser.add_argument("--batch", type=int, help="batch size for --model")
    parser.add_argument("--gpu", action="store_true", help="on the first GPU")
    parser.add_argument("--no-jit", action="store_true", help="without XLA")
    parser.add_argument("--jobs", type=int, default=8, help="cases at a time with --gpu")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        mode, *key, batch = chosen.child
        print(json.dumps(child(mode, (key[0], key[1], int(batch)), jit=not chosen.no_jit)))
        return
    keys = (
        [(chosen.model, "its own", chosen.batch)]
        if chosen.model
        else list(cases(list(UNSEEN) if chosen.unseen else chosen.only))
    )
    if chosen.gpu:
        on_gpu(keys, chosen)
        return
    kept = json.loads(chosen.truths.read_text()) if chosen.truths and chosen.truths.exists() else {}
    rows = []
    for key in keys:
        truths = kept.setdefault(" ".join(map(str, key)), [])
        while len(truths) < chosen.runs:
            truths.append(in_process("fit", key)["truth_bytes"])
            if chosen.truths:
                chosen.truths.write_text(json.dumps(kept, indent=1))
        found = in_process("quick", key)
        if not chosen.quick_only:
            found |= in_process("trials", key)
        rows.append(row(key, truths, found))
        if not chosen.json:
            print_row(rows[-1], with_header=len(rows) == 1)
    print(json.dumps(summary(rows), indent=1) if chosen.json else text(rows))


def cases(names: list[str]) -> Iterator[Key]:
    """Every case of these models."""
    for name in names:
        for optimizer, batches in (CASES | UNSEEN)[name]:
            yield from ((name, optimizer, batch) for batch in batches)


def on_gpu(keys: list[Key], chosen: argparse.Namespace) -> None:
    """Measure the cases on the first GPU; print each as a line of JSON, then the summary."""
    extra = ["--no-jit"] if chosen.no_jit else []

    def measured(key: Key) -> dict[str, Any]:
        try:
            truths = [
                in_process("fit", key, *extra, gpu=True)["truth_bytes"] for _ in range(chosen.runs)
            ]
            return row(key, truths, in_process("trials", key, *extra, gpu=True))
        except SystemExit as bad:
            return {"case": " ".join(map(str, key)), "failed": str(bad)[-300:]}

    rows = []
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for job in as_completed([pool.submit(measured, key) for key in keys]):
            rows.append(job.result())
            print(json.dumps(rows[-1]), file=sys.stderr if chosen.json else sys.stdout, flush=True)
    found = summary([one for one in rows if "failed" not in one]) | {"per_case": rows}
    if not chosen.json:
        del found["per_case"]  # printed already
    print(json.dumps(found, indent=1))


def child(mode: str, key: Key, *, jit: bool = True) -> dict[str, Any]:
    """Measure one case in this process: its truth, or its prediction."""
    name, optimizer, batch = key
    if ":" in name:
        file, _, function = name.rpartition(":")
        model, arguments = runpy.run_path(file)[function](batch)
    elif name in UNSEEN:
        from tests.bench import prediction_unseen

        model, arguments = getattr(prediction_unseen, name)(batch)
    else:
        from tests.bench.prediction_models import case

        model, arguments = case(name, batch, optimizer)
    if not jit:
        model.jit_compile = False
    if mode == "fit":
        return {"truth_bytes": fit_bytes(model, arguments)}
    return quick(model, arguments, batch) if mode == "quick" else by_trials(model, arguments, batch)


def in_process(mode: str, key: Key, *options: str, gpu: bool = False) -> dict[str, Any]:
    """The same in a fresh process."""
    return in_fresh_process(__file__, *options, "--child", mode, *map(str, key), gpu=gpu)


def quick(model: Any, arguments: dict[str, Any], batch: int) -> dict[str, Any]:
    """The prediction, its time and memory, and simpler predictions to compare it with."""
    from jupyter_tfguard.predict.traced.quick import QuickPrediction
    from jupyter_tfguard.predict.traced.trace import traced_step
    from jupyter_tfguard.training.models import variable_bytes
    from jupyter_tfguard.training.plan import FitPlan, leaves

    before = anonymous_bytes(os.getpid())
    began = time.perf_counter()
    plan = FitPlan.of(arguments)
    prediction = QuickPrediction(model, plan)
    found = prediction.at(batch)
    seconds = time.perf_counter() - began
    memory_bytes = anonymous_bytes(os.getpid()) - before
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
        "grappler_bytes": grappler_bytes(traced_step(model, plan).graph, found.batch_size),
        "liveness_bytes": prediction.features(found.batch_size).live_bytes,
        "features": dataclasses.asdict(prediction.features(found.batch_size)),
        "quick_seconds": seconds,
        "quick_memory_bytes": memory_bytes,
    }


def grappler_bytes(graph: Any, batch_size: int) -> int:
    """TensorFlow's own estimate: the peak that grappler finds for the graph of a training step at this batch size."""
    import tensorflow
    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
    from tensorflow.python.grappler.cluster import Cluster
    from tensorflow.python.grappler.item import Item
    from tensorflow.python.ops.handle_data_util import get_resource_handle_data

    meta = MetaGraphDef()
    meta.graph_def.CopyFrom(graph.as_graph_def())
    nodes = {node.name: node for node in meta.graph_def.node}
    for tensor in (*graph.inputs, *graph.internal_captures):
        node = nodes[tensor.op.name]
        if tensor.dtype != tensorflow.resource:
            shape = [batch_size if size is None else size for size in tensor.shape]
            node.attr["shape"].shape.CopyFrom(tensorflow.TensorShape(shape).as_proto())
        elif known := get_resource_handle_data(tensor).shape_and_type:
            # The placeholder of a variable has no shape of its contents; the operation that makes one has.
            node.op = "VarHandleOp"
            node.ClearField("attr")
            node.attr["dtype"].type = known[0].dtype
            node.attr["shape"].shape.CopyFrom(known[0].shape)
    wanted = (*(one.op for one in graph.outputs), *graph.control_outputs)
    meta.collection_def["train_op"].node_list.value.extend(one.name for one in wanted)
    peaks = Cluster().DeterminePeakMemoryUsage(Item(meta))
    return sum(peak for peak, _ in peaks.values())


def by_trials(model: Any, arguments: dict[str, Any], batch: int) -> dict[str, Any]:
    """The need as a trial of this batch measures it, and as trials of smaller batches foretell it."""
    from jupyter_tfguard.predict.estimate import estimate
    from jupyter_tfguard.predict.own_memory import uses_gpu
    from jupyter_tfguard.predict.traced.quick import QuickPrediction
    from jupyter_tfguard.predict.trial.extrapolate import predict
    from jupyter_tfguard.predict.trial.trial import need_here
    from jupyter_tfguard.training.plan import FitPlan

    plan = FitPlan.of(arguments)
    quick = None if uses_gpu() else QuickPrediction(model, plan)
    smaller = predict(model, plan, batch, quick=quick and quick.best_bytes)
    extrapolated = None
    if smaller is not None:
        extrapolated = need_here(smaller, plan, batch)
    answer = estimate(model, arguments, measure=True)
    return {
        "measured_bytes": answer.best_bytes if answer.grade is Grade.MEASURED else None,
        "measured_range_bytes": [answer.low_bytes, answer.high_bytes],
        "extrapolated_bytes": extrapolated,
    }


def row(key: Key, truths: list[int], found: dict[str, Any]) -> dict[str, Any]:
    """One case, with the relative error of every prediction that there is."""
    truth = int(statistics.median(truths))
    found = {"measured_bytes": None, "extrapolated_bytes": None} | found
    found["quick_bytes"] = found.pop("best_bytes", None)
    errors = {
        f"{name}_error": None if (size := found.get(f"{name}_bytes")) is None else size / truth - 1
        for name in ("quick", "measured", "extrapolated", *BASELINES)
    }
    low, high = found.pop("measured_range_bytes", (0, 0))
    return {
        "case": " ".join(map(str, key)),
        "truth_bytes": truth,
        "truth_spread": (max(truths) - min(truths)) / truth,
        **found,
        **errors,
        "is_below_high": truth <= found["high_bytes"] if "high_bytes" in found else None,
        "is_inside": None if found["measured_bytes"] is None else low <= truth <= high,
    }


def with_left_out(rows: list[dict[str, Any]]) -> list[float]:
    """Errors of the estimate when its three constants are fitted without the model of the case."""
    import numpy as np

    names = [one["case"].split()[0] for one in rows]
    truths = np.array([one["truth_bytes"] for one in rows], float)
    features = [one["features"] for one in rows]
    table = (
        np.array([[one["small_bytes"], one["node_count"], 1e6] for one in features])
        / truths[:, None]
    )
    wanted = 1 - np.array([one["pool_bytes"] for one in features]) / truths
    errors: list[float] = []
    for name in names:
        others = np.array([one != name for one in names])
        weights = np.ones(others.sum())
        for _ in range(50):  # least absolute errors by weighted least squares
            given = table[others] * weights[:, None]
            constants, *_ = np.linalg.lstsq(given, wanted[others] * weights, rcond=None)
            missed = np.abs(table[others] @ constants - wanted[others])
            weights = 1 / np.sqrt(np.maximum(missed, 0.001))
        errors.append(float(table[len(errors)] @ constants - wanted[len(errors)]))
    return errors


def quantile(values: list[float], fraction: float) -> float | None:
    """The smallest value that at least this fraction of the values does not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(fraction * len(ordered)) - 1] if ordered else None


def share(values: list[bool | None]) -> float | None:
    """Of the known values, the part that is true."""
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None


def errors_of(rows: list[dict[str, Any]], name: str) -> list[float]:
    """The known errors of one prediction, without their signs."""
    return [abs(one[f"{name}_error"]) for one in rows if one[f"{name}_error"] is not None]


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Median and 90th percentile of the errors; the shares of truths in the measured range and below the quick upper end."""
    quantiles = {
        f"{prefix}{title}_error": quantile(errors_of(rows, name), fraction)
        for name, prefix in (
            ("measured", ""),
            ("quick", "quick_"),
            ("extrapolated", "extrapolated_"),
        )
        for title, fraction in (("median", 0.5), ("p90", 0.9))
    }
    return {
        "cases": len(rows),
        **quantiles,
        "inside_range": share([one["is_inside"] for one in rows]),
        "quick_below_upper_end": share([one["is_below_high"] for one in rows]),
        "per_case": rows,
    }


def print_row(one: dict[str, Any], *, with_header: bool) -> None:
    """Print one line of the table."""
    if with_header:
        print(
            f"{'case':26}{'truth':>7}{'high':>7}  MB; errors of {', '.join(_SHOWN)}; time, memory"
        )
    sizes = "".join(f"{one[f'{name}_bytes'] / MB:7.0f}" for name in ("truth", "high"))
    errors = "".join(
        f"{'-':>8}" if (error := one[f"{name}_error"]) is None else f"{error:+8.1%}"
        for name in _SHOWN
    )
    cost = f"{one['quick_seconds']:6.1f} s{one['quick_memory_bytes'] / MB:6.0f} MB"
    unknown = ", ".join(one["unknown"][:4])
    spread = f"±{one['truth_spread'] / 2:.1%}"
    print(f"{one['case']:26}{sizes} {spread}{errors}{cost}  {unknown}", flush=True)


def text(rows: list[dict[str, Any]]) -> str:
    """The summary, in words."""
    found = summary(rows)
    lines = [f"{len(rows)} cases; truth below the upper end: {found['quick_below_upper_end']:.0%}"]
    if found["inside_range"] is not None:
        lines.append(f"truth inside the range of a trial: {found['inside_range']:.0%}")
    for name in _SHOWN:
        if errors := errors_of(rows, name):
            middle, most = quantile(errors, 0.5), quantile(errors, 0.9)
            lines.append(f"{name}: median {middle:.1%}, p90 {most:.1%}")
    if len({one["case"].split()[0] for one in rows}) > 3:  # as many as there are constants
        errors = [abs(one) for one in with_left_out(rows)]
        lines.append(
            "quick, constants fitted without the model: "
            f"median {quantile(errors, 0.5):.1%}, p90 {quantile(errors, 0.9):.1%}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
