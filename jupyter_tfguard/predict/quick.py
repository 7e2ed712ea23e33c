"""Estimate of the host memory that ``fit`` will need on the CPU, from a traced and simulated training step.

In addition to the memory in use before ``fit``. Takes about as long as one step. Does not cover validation data,
``run_eagerly``, XLA, distribution strategies and other processes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .batches import LARGEST_BATCH, copied_bytes
from .liveness import Simulation
from .program import layers_of
from .read_graph import program_of
from .reusable import free_in_pool
from .sizes import variable_bytes
from .trace import CannotTrace, traced_step

# Fitted to the models of tests/benchmarks/prediction.py: TensorFlow 2.21, Keras 3.15, oneDNN, two cores.
_SMALL_FACTOR = 1.3  # malloc does not fill its arenas
_NODE_BYTES = 33_500
_FIXED_BYTES = 23_500_000
_RANGE = (0.78, 1.3)
_RANGE_UNSURE = (0.72, 1.45)  # with loops, or with tensors of unknown size
# Of the free memory of the pool that a fit can use: it is in pieces, and its size is an upper bound.
_FREE_SHARE = 0.5
_SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory that a fit needs in addition to the memory already in use.

    Attributes:
        batch_size: Number of samples in a batch.
        low_bytes: The fit rarely needs less.
        best_bytes: The most likely value.
        high_bytes: The fit rarely needs more.
        gradients_bytes: Gradients of all weights; part of the memory of the step.
        slots_bytes: Variables of the optimizer that do not exist yet.
        activations_bytes: Everything else that a step holds in tensors.
        graph_bytes: Fixed cost of the nodes of the graph, and of the first step.
        data_bytes: Copies of the arrays given to ``fit``, and batches that wait in its pipeline.
        unknown: Layers or operations whose size is a guess.
    """

    batch_size: int
    low_bytes: int
    best_bytes: int
    high_bytes: int
    gradients_bytes: int
    slots_bytes: int
    activations_bytes: int
    graph_bytes: int
    data_bytes: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """What the estimate is computed from, by constants that were fitted.

    Attributes:
        pool_bytes: Memory of the pool that the simulated fit touches, mean of the seeds; most of the data are in the pool.
        small_bytes: Peak of the tensors outside of the pool.
        live_bytes: Peak of all tensors in use at the same time.
        data_bytes: Copies of whole arrays, and batches.
        slots_bytes: Variables that do not exist yet.
        node_count: Nodes of the graph and its functions.
    """

    pool_bytes: int
    small_bytes: int
    live_bytes: int
    data_bytes: int
    slots_bytes: int
    node_count: int


class QuickPrediction:
    """Estimates for one model and any batch size. The model is traced once.

    Args:
        model: A built and compiled model of Keras 3. It is unchanged afterwards.
        arguments: The arguments of ``fit``, by name.

    Raises:
        CannotTrace: With the reason.
    """

    def __init__(self, model: Any, arguments: Mapping[str, Any]) -> None:
        try:
            self._program = program_of(traced_step(model, arguments))
        except CannotTrace:
            raise
        except Exception as error:  # private parts of TensorFlow differ between versions
            raise CannotTrace(
                f"its graph cannot be read: {type(error).__name__}: {error}"
            ) from error
        self._gradients_bytes = sum(variable_bytes(one) for one in model.trainable_weights)
        self._copies_bytes, _ = copied_bytes(arguments)
        self._free_bytes = int(_FREE_SHARE * free_in_pool())
        self._workers = _worker_count()
        # The cell of a recurrent layer is named by that layer.
        found = list(model._flatten_layers())
        cells = {one.cell.name for one in found if getattr(one, "cell", None) is not None}
        layers = {one.name for one in found} - cells
        self._unknown = tuple(dict.fromkeys(layers_of(self._program.unknown, layers)))
        self.features = cache(self._features)

    def _features(self, batch_size: int) -> Features:
        program = self._program
        simulation = Simulation(program, batch_size, self._free_bytes, self._copies_bytes)
        runs = [simulation.run(seed, self._workers) for seed in _SEEDS]
        return Features(
            pool_bytes=sum(run.pool_bytes for run in runs) // len(runs),
            small_bytes=sum(run.small_bytes for run in runs) // len(runs),
            live_bytes=sum(run.live_bytes for run in runs) // len(runs),
            data_bytes=simulation.data_bytes,
            slots_bytes=sum(
                size.bytes(batch_size)
                for name, size in program.variables.items()
                if name not in program.existing
            ),
            node_count=program.node_count,
        )

    def at(self, batch_size: int) -> Estimate:
        """The estimate for a batch size."""
        found = self.features(batch_size)
        tensors = found.pool_bytes + round(_SMALL_FACTOR * found.small_bytes)
        data = min(found.data_bytes, tensors)
        step = tensors - data
        graph = _FIXED_BYTES + _NODE_BYTES * found.node_count
        best = tensors + graph
        slots = min(found.slots_bytes, step)
        gradients = min(self._gradients_bytes, step - slots)
        is_unsure = self._unknown or any(op.loop is not None for op in self._program.ops)
        low, high = _RANGE_UNSURE if is_unsure else _RANGE
        return Estimate(
            batch_size=batch_size,
            low_bytes=int(low * best),
            best_bytes=best,
            high_bytes=int(high * best),
            gradients_bytes=gradients,
            slots_bytes=slots,
            activations_bytes=step - slots - gradients,
            graph_bytes=graph,
            data_bytes=data,
            unknown=self._unknown,
        )

    def largest_batch(self, available_bytes: int, limit: int = LARGEST_BATCH) -> int | None:
        """The largest batch size whose upper end fits; None if none does.

        Args:
            available_bytes: Memory that the fit may use.
            limit: The largest batch size to try.
        """
        if self.at(1).high_bytes > available_bytes:
            return None
        fits, fails = 1, 2
        while fails <= limit and self.at(fails).high_bytes <= available_bytes:
            fits, fails = fails, 2 * fails
        while fails - fits > max(1, fits // 32):  # closer than the estimate is exact
            middle = (fits + fails) // 2
            if self.at(middle).high_bytes <= available_bytes:
                fits = middle
            else:
                fails = middle
        return min(fits, limit)


def _worker_count() -> int:
    """Operations that TensorFlow runs at the same time: its setting, or the number of cores."""
    threading = sys.modules["tensorflow"].config.threading
    return int(threading.get_inter_op_parallelism_threads()) or len(os.sched_getaffinity(0))
