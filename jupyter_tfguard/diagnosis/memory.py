"""What the memory rules share: how near the limit, how much grew, and what to change about this run."""

from __future__ import annotations

import itertools

from ..limits import CONTAINER_LIMIT, MACHINE_MEMORY
from ..units import human_bytes, human_seconds
from .activity import Cell, Fit, largest_arrays, last_cell, last_fit
from .evidence import Evidence
from .finding import Advice, Fact, Source
from .leak_advice import leak_advice
from .typed import number_of

NEAR_LIMIT_FRACTION = 0.85
_SHORT_FRACTION = 0.08
_SPARE_BYTES = 64 * 1024 * 1024
# What rose from its lowest fifth to its peak within so many seconds rose at once.
_SUDDEN_SECONDS = 5.0
_SUDDEN_SHARE = 0.2
_SUDDEN_POINTS = 10


def memory_source(seen: Evidence) -> Source:
    """Who measured the memory of this bundle."""
    return Source.SERVER if (seen.server or {}).get("rows") else Source.KERNEL


def limit_text(limit: tuple[int, str]) -> str:
    """``4.00 GiB (container limit)``."""
    return f"{human_bytes(limit[0])} ({limit[1]})"


def reached_bytes(seen: Evidence, *, claimed: bool = True) -> int | None:
    """The most memory known to have been in use against the limit: by its cgroup, or by the whole machine.

    Args:
        claimed: Whether the kernel's own word counts where the server saw nothing, as in :meth:`Evidence.series`.
    """
    limit = seen.limit()
    if limit is None:
        return seen.peak(claimed=claimed)
    if limit[1] == MACHINE_MEMORY:
        lowest = lowest_available(seen, claimed=claimed)
        return limit[0] - int(lowest) if lowest is not None else seen.peak(claimed=claimed)
    tops = [value for _, value in seen.series("cgroup.used_bytes", claimed=claimed)]
    for group in seen.groups:
        if group.limit_bytes is not None:
            marks = (group.after.get("peak_bytes"), group.before.get("peak_bytes"))
            tops += [known for mark in marks if (known := number_of(mark))]
    return int(max(tops)) if tops else seen.peak(claimed=claimed)


def near_limit(seen: Evidence, *, claimed: bool = True) -> bool | None:
    """True when memory in use came near the limit; None when either is unknown. `claimed` as in :func:`reached_bytes`."""
    limit, reached = seen.limit(), reached_bytes(seen, claimed=claimed)
    if limit is None or reached is None:
        return None
    return reached >= NEAR_LIMIT_FRACTION * limit[0]


def lowest_available(seen: Evidence, *, claimed: bool = True) -> float | None:
    """Lowest memory that the machine had available in the last samples, bytes. `claimed` as in :func:`reached_bytes`."""
    known = [value for _, value in seen.series("host.available_bytes", claimed=claimed)[-50:]]
    before = seen.host("host_available_bytes")
    return min([*known, *([before] if before is not None else [])], default=None)


def host_was_short(seen: Evidence) -> bool:
    """True when the machine itself had next to nothing left before the death."""
    total, available = seen.host("host_total_bytes"), lowest_available(seen)
    return total is not None and available is not None and available < _SHORT_FRACTION * total


def peak_fact(seen: Evidence) -> Fact | None:
    """``Held at most 3.9 GiB of 4.0 GiB allowed (container limit)``."""
    peak, limit = seen.peak_bytes, seen.limit()
    if peak is None:
        return None
    text = f"The kernel's memory was {human_bytes(peak)} at its highest known point"
    if limit is not None:
        text += f"; the limit is {limit_text(limit)}"
        if peak > limit[0]:
            text += ", which may count files that it maps elsewhere"
    return Fact(memory_source(seen), text)


def growth_fact(seen: Evidence) -> Fact | None:
    """How much the memory grew since the fit, or else the cell, began."""
    start = _start(seen)
    peak = _peak_of_cell(seen)
    if start is None or peak is None:
        return None
    name, base = start
    if peak - base < _SPARE_BYTES:
        return None
    return Fact(
        Source.KERNEL,
        f"It grew by {human_bytes(peak - base)} since {name} began (from {human_bytes(base)})",
    )


def course_fact(seen: Evidence) -> Fact | None:
    """How it grew: steadily over epochs, or most of it within seconds; None when neither can be said."""
    if seen.growth is not None:
        return seen.growth.fact
    curve = [(when, size) for when, size in seen.series("process.rss_bytes") if size > 0]
    if len(curve) < _SUDDEN_POINTS:
        return None
    top, peak = max(curve, key=lambda point: point[1])
    before = [(when, size) for when, size in curve if when < top]
    base = min((size for _, size in before), default=peak)
    low = [when for when, size in before if size <= base + _SUDDEN_SHARE * (peak - base)]
    if (
        peak - base < 4 * _SPARE_BYTES
        or top - low[-1] > _SUDDEN_SECONDS
        or top - curve[0][0] < 2 * _SUDDEN_SECONDS
    ):
        return None
    text = f"It rose by {human_bytes(peak - base)} within {human_seconds(top - low[-1])}, at once and not little by little"
    return Fact(memory_source(seen), text)


def _start(seen: Evidence) -> tuple[str, int] | None:
    fit: Fit | None = last_fit(seen)
    if fit is not None and fit.rss_bytes:
        return f"the {fit.what}", fit.rss_bytes
    cell: Cell | None = last_cell(seen)
    if cell is not None and cell.running and cell.rss_bytes:
        return cell.name, cell.rss_bytes
    return None


def _peak_of_cell(seen: Evidence) -> int | None:
    """Highest resident memory since the last cell began; an earlier cell's may have been higher."""
    peak, cell = seen.peak_bytes, last_cell(seen)
    if cell is None or not cell.peak_bytes or peak is None or peak > cell.peak_bytes:
        return peak  # it rose in this cell, or nothing says that it did not
    began = cell.started or 0.0
    sizes = [size for when, size in seen.series("process.rss_bytes") if when >= began]
    return int(max(sizes)) if sizes else None


def next_batch_size(
    batch_size: int, base_bytes: int, peak_bytes: int, limit_bytes: int
) -> int | None:
    """A batch size to try next, an estimate: a power of two, smaller than the one that failed.

    What a batch needs is taken to grow with its size. The peak is where the run was stopped, not what it would have
    needed, so half of what fits by that reckoning is proposed. None when a smaller batch cannot help.
    """
    room = 0.9 * limit_bytes - base_bytes
    needed = peak_bytes - base_bytes
    if room <= 0 or needed < _SPARE_BYTES or batch_size < 2:
        return None
    fits = batch_size * min(1.0, room / needed) / 2
    return 1 << (int(fits).bit_length() - 1) if fits >= 1 else None


def memory_advice(seen: Evidence) -> tuple[Advice, ...]:
    """What to change about this run, the most effective first, at most three."""
    found: list[Advice] = []
    fit, peak, limit = last_fit(seen), seen.peak_bytes, seen.limit()
    arrays = largest_arrays(seen)
    if seen.growth is not None:
        found += leak_advice(seen, seen.growth)[:2]
    elif fit is not None and fit.batch_size and fit.rss_bytes and peak and limit:
        smaller = next_batch_size(fit.batch_size, fit.rss_bytes, peak, limit[0])
        if smaller is not None:
            used = f"batch size {fit.batch_size} took more than {human_bytes(peak - fit.rss_bytes)} on top of the {human_bytes(fit.rss_bytes)} held when {fit.what} began"
            found.append(
                Advice(
                    f"Use a smaller batch: {smaller} is an estimate to try next.",
                    f"The {used}; the limit is {human_bytes(limit[0])}.",
                    f"model.{fit.what}(..., batch_size={smaller})",
                )
            )
            if fit.what == "fit" and fit.optimizer and fit.batch_size // smaller > 1:
                found.append(
                    Advice(
                        "Keep the effective batch, if the result depends on it.",
                        "Keras 3 adds up the gradients of several small batches before each update.",
                        f"keras.optimizers.{fit.optimizer}(gradient_accumulation_steps={fit.batch_size // smaller})",
                    )
                )
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
    if arrays and arrays[0][1] > 4 * _SPARE_BYTES:
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
    if limit is not None and limit[1] == CONTAINER_LIMIT and len(found) < 3:
        how = "The limit is set by whoever runs this container, batch job or service."
        found.append(Advice(f"Or raise the limit of {human_bytes(limit[0])}.", how))
    return tuple(found[:3])


def _same_size(arrays: list[tuple[str, int]]) -> tuple[tuple[str, int], tuple[str, int]] | None:
    for one, other in itertools.pairwise(arrays):
        if one[1] == other[1] and one[1] > _SPARE_BYTES:
            return one, other
    return None


def peak_chips(seen: Evidence) -> tuple[str, ...]:
    """``peak 3.98 GiB``, when it is known."""
    return (f"peak {human_bytes(seen.peak_bytes)}",) if seen.peak_bytes else ()
