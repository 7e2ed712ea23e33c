"""How long the quick estimate takes, beside a trace and steps of the same fit: ``python -m tests.benchmarks.quick_time``.

Each model has a fresh process, which estimates, trains six steps, and traces the training step again. No more than the time of
one trace and three later steps is wanted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.batch_limit import MODELS  # noqa: E402
from tests.benchmarks.bound import in_fresh_process  # noqa: E402
from tests.benchmarks.prediction import CASES  # noqa: E402

WANTED_STEPS = 3


def main() -> None:
    """Measure each model with the first optimizer and batch of ``prediction.py``, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=MODELS, metavar="NAME")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        name, optimizer, batch = chosen.child
        print(json.dumps(child(name, optimizer, int(batch))))
        return
    ratios = []
    print("| model | batch | estimate | of it trace | trace of fit | step | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.only:
        optimizer, batches = CASES[name][0]
        one = in_fresh_process(__file__, "--child", name, optimizer, str(batches[0]))
        wanted = one["fit_trace_seconds"] + WANTED_STEPS * one["step_seconds"]
        ratios.append(one["quick_seconds"] / wanted)
        times = "".join(f" {seconds:.2f} s |" for seconds in one.values())
        print(f"| {name} | {batches[0]} |{times} {ratios[-1]:.2f} |", flush=True)
    print(f"Ratio: median {statistics.median(ratios):.2f}, most {max(ratios):.2f}.")


def child(name: str, optimizer: str, batch: int) -> dict[str, float]:
    """The seconds of the estimate, of its trace, of the trace of ``fit``, and of a later step."""
    from jupyter_tfguard.predict import quick
    from tests.benchmarks.prediction_models import case

    model, arguments = case(name, batch, optimizer)
    traced_step, spent = quick.traced_step, []

    def timed(*given: Any) -> Any:
        began = time.perf_counter()
        try:
            return traced_step(*given)
        finally:
            spent.append(time.perf_counter() - began)

    quick.traced_step = timed  # type: ignore[assignment]
    began = time.perf_counter()
    quick.QuickPrediction(model, arguments).at(batch)
    seconds = time.perf_counter() - began
    steps = step_seconds(model, arguments)
    model.make_train_function(force=True)
    again = step_seconds(model, arguments)
    later = statistics.median(steps[1:] + again[1:])
    return {
        "quick_seconds": seconds,
        "quick_trace_seconds": spent[0],
        "fit_trace_seconds": again[0] - later,
        "step_seconds": later,
    }


def step_seconds(model: Any, arguments: dict[str, Any]) -> list[float]:
    """The seconds of each step of a fit."""
    import keras

    times: list[float] = []

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.began = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            times.append(time.perf_counter() - self.began)

    model.fit(**arguments, verbose=0, callbacks=[Clock()])
    return times


if __name__ == "__main__":
    main()
