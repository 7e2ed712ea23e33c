"""Estimate of the host memory that ``fit`` will need on the CPU, from a traced and simulated training step.

In addition to the memory in use before ``fit``. Takes about as long as one step. Does not cover validation data,
``run_eagerly``, XLA, distribution strategies and other processes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...training.plan import LARGEST_BATCH, FitPlan, rounded_down
from ..own_memory import free_in_pool, has_pool
from .liveness import Simulation
from .program import layers_of
from .read_graph import program_of
from .trace import CannotTrace, traced_step

# Fitted to the models of tests/bench/prediction.py: TensorFlow 2.21, Keras 3.15, oneDNN, two cores.
_SMALL_FACTOR = 1.3  # malloc does not fill its arenas
_NODE_BYTES = 33_500
_FIXED_BYTES = 23_500_000
_RANGE = (0.78, 1.3)
_RANGE_UNSURE = (0.72, 1.45)  # with loops, or with tensors of unknown size
_SEEDS = (1, 2, 3)
_DIGITS = 3  # of a batch size to name
_FIRST_GUESS, _MOST_GUESSES = 64, 40  # of the search for the largest batch


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory that a fit needs in addition to the memory already in use.

    Attributes:
        batch_size: Number of samples in a batch.
        low_bytes: The fit rarely needs less.
        best_bytes: The most likely value.
        high_bytes: The fit rarely needs more.
        gradients_bytes: Gradients of all weights; part of the memory of the step.
        weights_bytes: Weights that do not exist yet.
        slots_bytes: Variables of the optimizer that do not exist yet, beyond what fits into free memory of the pool.
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
    weights_bytes: int
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
        slots_bytes: Variables that do not exist yet, weights included.
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
        model: A compiled model of Keras 3. It is unchanged afterwards.
        plan: The fit.

    Raises:
        CannotTrace: With the reason.
    """

    def __init__(self, model: Any, plan: FitPlan) -> None:
        try:
            trace = traced_step(model, plan)
            self._program = program_of(trace)
        except CannotTrace:
            raise
        except Exception as error:  # private parts of TensorFlow differ between versions
            raise CannotTrace(
                f"its graph cannot be read: {type(error).__name__}: {error}"
            ) from error
        self._gradients_bytes = trace.gradients_bytes
        self._weights_bytes = trace.new_weights_bytes
        self._copies_bytes, _ = plan.copies_bytes
        self._samples = plan.sample_count
        self._free_bytes, self._has_pool = free_in_pool(), has_pool()
        self._workers = _worker_count()
        self._unknown = tuple(dict.fromkeys(layers_of(self._program.unknown, trace.layers)))
        self.features = cache(self._features)

    def _features(self, batch_size: int) -> Features:
        program = self._program
        batches = None if self._samples is None else -(-self._samples // batch_size)
        simulation = Simulation(
            program, batch_size, self._free_bytes, self._copies_bytes, batches, self._has_pool
        )
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

    def best_bytes(self, batch_size: int) -> int:
        """The most likely need of a batch size."""
        return self.at(batch_size).best_bytes

    def at(self, batch_size: int) -> Estimate:
        """The estimate for a batch size."""
        found = self.features(batch_size)
        tensors = found.pool_bytes + round(_SMALL_FACTOR * found.small_bytes)
        data = min(found.data_bytes, tensors)
        step = tensors - data
        graph = _FIXED_BYTES + _NODE_BYTES * found.node_count
        best = tensors + graph
        weights = min(self._weights_bytes, step)
        slots = max(0, found.slots_bytes - self._weights_bytes - self._free_bytes)
        slots = min(slots, step - weights)
        gradients = min(self._gradients_bytes, step - weights - slots)
        is_unsure = self._unknown or any(op.loop is not None for op in self._program.ops)
        low, high = _RANGE_UNSURE if is_unsure else _RANGE
        return Estimate(
            batch_size=batch_size,
            low_bytes=int(low * best),
            best_bytes=best,
            high_bytes=int(high * best),
            gradients_bytes=gradients,
            weights_bytes=weights,
            slots_bytes=slots,
            activations_bytes=step - weights - slots - gradients,
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
        return largest_below(lambda size: self.at(size).high_bytes, available_bytes, limit)

    def fitting_batch(self, available_bytes: int, sample_count: int | None) -> int | None:
        """The largest batch that should fit, a round number or all samples; None if there is none or no limit of it."""
        most = self.largest_batch(available_bytes, sample_count or LARGEST_BATCH)
        if most is None or most == LARGEST_BATCH:
            return None
        return most if most == sample_count else rounded_down(most, _DIGITS)


def largest_below(need: Callable[[int], int], available: int, limit: int) -> int | None:
    """The largest number whose need is available, to one part in 32; None if there is none. Few calls of `need`.

    Args:
        need: Grows about linearly with the number.
        available: As `need`.
        limit: The largest number to try.
    """
    known = {1: need(1)}
    fits, fails = 1, limit + 1
    if known[1] > available:
        return None
    guess = min(_FIRST_GUESS, limit)
    for turn in range(_MOST_GUESSES):
        step = max(1, fits // 32)  # closer than the estimate is exact
        if fits == limit or fails - fits <= (step if fails <= limit else 1):
            break
        if turn:
            # On the line through the nearest two; the middle if that has not found it for long.
            a, b = sorted(known, key=lambda size: abs(known[size] - available))[:2]
            slope = (known[a] - known[b]) / (a - b)
            on_line = a + (available - known[a]) / slope if slope > 0 else 2 * fits
            guess = round(on_line) if turn < _MOST_GUESSES // 2 else (fits + fails) // 2
            highest = min(limit, 64 * fits) if fails > limit else fails - step
            guess = max(min(fits + step, fails - 1), min(guess, highest))
        known[guess] = need(guess)
        fits, fails = (guess, fails) if known[guess] <= available else (fits, guess)
    return fits


def _worker_count() -> int:
    """Operations that TensorFlow runs at the same time: its setting, or the number of cores."""
    threading = sys.modules["tensorflow"].config.threading
    return int(threading.get_inter_op_parallelism_threads()) or len(os.sched_getaffinity(0))
