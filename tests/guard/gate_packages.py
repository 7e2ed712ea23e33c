"""Programs of gate_programs.py about packages whose own allocations the gate sees: TensorFlow, pandas, scikit-learn."""

from __future__ import annotations

import gc
import io
import os
import resource
import signal
import tempfile
import threading
import time
from typing import Any

import numpy as np

from jupyter_tfguard.guard import native
from jupyter_tfguard.units import GIB, MIB
from tests.guard.gate_rig import SIGNAL, Gate


def tensorflow() -> object:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    # A version is tried before it is listed as tested.
    native._TESTED_TENSORFLOW = {tuple(tf.__version__.split(".")[:2])}
    gate = Gate()
    found: dict[str, Any] = {"parts": gate.parts}
    with gate.cell() as found["op"]:
        tf.random.normal((30000, 30000))
    with gate.cell() as found["matrix"]:
        tf.matmul(tf.ones((20000, 100)), tf.ones((100, 20000)))
    with gate.cell() as found["fits"]:
        found["fits"]["sum"] = float(tf.reduce_sum(tf.ones((5000, 5000))))
    found["released"] = gate.native.give_back()
    # A tensor on disk stops the run; here it is to be used.
    signal.signal(SIGNAL, lambda *_: gate.native.delivered())
    tensors: list[Any] = []
    for rows in (
        25,
        20,
        30,
        15,
        35,
    ):  # whether NumPy's copy or the tensor is the first that does not fit depends on the rest
        source = np.ones((rows, MIB), "f4")
        with gate.cell() as found["constant"]:
            while not found["constant"].get("on_disk"):
                tensors.append(tf.constant(source))
                found["constant"]["on_disk"] = gate.native.snapshot().spilled_bytes / source.nbytes
        found["constant"]["refused"] = gate.native.snapshot().last_refused_bytes / source.nbytes
        if found["constant"]["error"] is None:
            break
        tensors.clear()
        gate.native.give_back()
    found["constant"]["means"] = sorted({float(tf.reduce_mean(one)) for one in tensors})
    gate.native.stop()  # while a tensor is on disk
    tensors.clear()
    gc.collect()
    found["after"] = float(tf.reduce_sum(tf.ones((1000, 1000))))
    again = Gate()
    with again.cell() as found["again"]:
        tf.random.normal((30000, 30000))
    found["armed_again"] = again.parts["tensorflow"]
    again.native.stop()
    return found


def release_beside_a_thread() -> object:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # what it prints about memory is a warning
    import tensorflow as tf

    gate = Gate(parts=native.SOFT_PARTS)
    with gate.cell() as seen:
        tf.reduce_sum(tf.ones((64, MIB)))  # leaves 256 MB in the pool
        kept, before = tf.range(8 * MIB), gate.native.available_bytes()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        first = gate.native.give_back()
        file.seek(0)
        noise = file.read().decode()
    returned, whole = gate.native.available_bytes() - before, int(tf.reduce_max(kept))
    ended = threading.Event()

    def use_pool() -> None:
        while not ended.is_set():
            tf.ones((8, MIB))

    thread = threading.Thread(target=use_pool)
    thread.start()
    time.sleep(0.2)
    mapped = _mapped_bytes()
    released = sum(gate.native.give_back() > 0 for _ in range(200))
    grown = _mapped_bytes() - mapped
    ended.set()
    thread.join()
    return {
        "part": gate.parts["pool"],
        "first": first,
        "noise": noise,
        "returned": returned,
        "whole": whole,
        "seen": seen,
        "released": released,
        "grown_bytes": grown,
    }


def _mapped_bytes() -> int:
    """Address space of this process: the pool never returns what it has got."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def pandas_parser() -> object:
    import pandas as pd

    gate = Gate()
    path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    with open(path, "w") as file:
        file.writelines("1,2,3,4,5,6,7,8\n" * 200_000 for _ in range(40))
    # However fast it reads, a request is refused before the level of a stop. A path would be read by several threads.
    with gate.cell(rate_seconds=0.0) as seen, open(path) as file:
        pd.read_csv(file, header=None, dtype=str, low_memory=False)
    with gate.cell() as small:
        small["rows"] = len(pd.read_csv(path, header=None, nrows=100))
    os.remove(path)
    return {"part": gate.parts["pandas"], "seen": seen, "small": small}


def pandas_hash_tables() -> object:
    """Reads many texts, with a little more room each time: any request may be the first that does not fit."""
    import pandas as pd

    text = "\n".join(f"text {number}" for number in range(250_000))
    pd.read_csv(io.StringIO(text), dtype=object, low_memory=False)
    gate = Gate(parts=native.SOFT_PARTS)
    errors = []
    for room in range(2 * MIB, 60 * MIB, 2 * MIB):
        with gate.cell(reserve_bytes=gate.native.available_bytes() - room) as seen:
            pd.read_csv(io.StringIO(text), dtype=object, low_memory=False)
        errors.append(seen["error"])
    return errors


def trees_are_refused() -> object:
    """Builders of trees run in native threads."""
    from sklearn.ensemble import ExtraTreesRegressor

    gate = Gate(parts=native.SOFT_PARTS)
    x = np.random.default_rng(0).random((60_000, 3), dtype="f4")
    forest = ExtraTreesRegressor(n_estimators=2, n_jobs=2, random_state=0, max_features=1)
    with gate.cell(reserve_bytes=GIB) as refused:
        forest.fit(x, x[:, 0])
    with gate.cell() as fits:
        fits["trees"] = len(forest.fit(x, x[:, 0]).estimators_)
    return {"part": gate.parts["sklearn"], "refused": refused, "fits": fits}
