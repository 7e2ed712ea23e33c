"""What to change about a run that memory ended: a batch to try next, data in pieces, a copy less, a higher limit."""

from __future__ import annotations

import itertools

from ..limits import ADDRESS_SPACE_LIMIT, CONTAINER_LIMIT, DATA_LIMIT, Limit
from ..units import human_bytes
from .activity import Fit, largest_arrays, last_fit
from .evidence import Evidence
from .finding import Advice
from .leak_advice import leak_advice
from .limits_seen import use_of
from .memory import SPARE_BYTES, growth_fact

_SETTERS = {
    CONTAINER_LIMIT: "The limit is set by whoever runs this container, batch job or service.",
    ADDRESS_SPACE_LIMIT: "Set by `ulimit -v` in the shell, batch system or service that started Jupyter, or by the notebook itself.",
    DATA_LIMIT: "Set by `ulimit -d` in the shell, batch system or service that started Jupyter, or by the notebook itself.",
}


def memory_advice(seen: Evidence, limit: Limit | None) -> tuple[Advice, ...]:
    """What to change about this run, the most effective first, at most three.

    Args:
        limit: The one that ended the run; of a limit of the process, that it refused memory. None = not known.
    """
    found: list[Advice] = []
    arrays = largest_arrays(seen)
    if seen.growth is not None:
        found += leak_advice(seen, seen.growth)[:2]
    elif limit is not None:
        found += _batch_advice(seen, limit)
    twins = _same_size(arrays)
    if twins is not None:
        (first, size), (second, _) = twins
        found.append(
            Advice(
                "Free the spare copy, if it is one.",
                f"{first} and {second} hold {human_bytes(size)} each.",
                f"del {first}" if first.isidentifier() else None,
            )
        )
    if arrays and arrays[0][1] > 4 * SPARE_BYTES:
        held = ", ".join(f"{name} {human_bytes(size)}" for name, size in arrays[:3])
        found.append(
            Advice(
                "Feed the data in batches instead of one array in memory.",
                f"Largest arrays when the last cell ended: {held}. Keras copies an array whole before it trains; "
                "a keras.utils.PyDataset or tf.data pipeline hands over one batch at a time.",
            )
        )
    if not found:
        grown = growth_fact(seen)
        found.append(
            Advice(
                "Load less at once, or free what is no longer needed before this cell.",
                f"{grown.text}." if grown else "",
            )
        )
    if limit is not None and limit.name in _SETTERS and len(found) < 3:
        raising = f"Or raise the limit of {human_bytes(limit.size_bytes)}."
        found.append(Advice(raising, _SETTERS[limit.name]))
    return tuple(found[:3])


def _batch_advice(seen: Evidence, limit: Limit) -> list[Advice]:
    """A smaller batch for the fit that ran; empty where none can be reckoned."""
    fit = last_fit(seen)
    took = None if fit is None else _taken(seen, limit, fit)
    if fit is None or took is None or not fit.batch_size:
        return []
    base, peak = took
    smaller = next_batch_size(fit.batch_size, base, peak, limit.size_bytes)
    if smaller is None:
        return []
    verb, state = ("asked for", "in use") if limit.counts_address_space else ("took", "held")
    used = f"batch size {fit.batch_size} {verb} more than {human_bytes(peak - base)} on top of the {human_bytes(base)} {state} when {fit.what} began"
    found = [
        Advice(
            f"Use a smaller batch: {smaller} is an estimate to try next.",
            f"The {used}; the limit is {limit.text(human_bytes(limit.size_bytes))}.",
            f"model.{fit.what}(..., batch_size={smaller})",
        )
    ]
    if fit.what == "fit" and fit.optimizer and fit.batch_size // smaller > 1:
        found.append(
            Advice(
                "Keep the effective batch, if the result depends on it.",
                "Keras 3 adds up the gradients of several small batches before each update.",
                f"keras.optimizers.{fit.optimizer}(gradient_accumulation_steps={fit.batch_size // smaller})",
            )
        )
    return found


def _taken(seen: Evidence, limit: Limit, fit: Fit) -> tuple[int, int] | None:
    """Bytes of what the limit counts at the beginning of the fit, and at its end at least; None where not known."""
    if not limit.counts_address_space:
        peak = seen.peak_bytes
        return (fit.rss_bytes, peak) if fit.rss_bytes and peak else None
    began = fit.started
    before = [used for when, used in use_of(seen, limit) if began is not None and when <= began]
    # What was refused would have passed the limit.
    return (int(before[-1]), limit.size_bytes) if before else None


def next_batch_size(
    batch_size: int, base_bytes: int, peak_bytes: int, limit_bytes: int
) -> int | None:
    """A batch size to try next, an estimate: a power of two, smaller than the one that failed.

    What a batch needs is taken to grow with its size. The peak is where the run was stopped, not what it would have
    needed, so half of what fits by that reckoning is proposed. None when a smaller batch cannot help.
    """
    room = 0.9 * limit_bytes - base_bytes
    needed = peak_bytes - base_bytes
    if room <= 0 or needed < SPARE_BYTES or batch_size < 2:
        return None
    fits = batch_size * min(1.0, room / needed) / 2
    return 1 << (int(fits).bit_length() - 1) if fits >= 1 else None


def _same_size(arrays: list[tuple[str, int]]) -> tuple[tuple[str, int], tuple[str, int]] | None:
    for one, other in itertools.pairwise(arrays):
        if one[1] == other[1] and one[1] > SPARE_BYTES:
            return one, other
    return None
