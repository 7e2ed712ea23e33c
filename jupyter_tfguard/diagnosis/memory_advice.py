"""Advice for a run that ended because of memory: a smaller batch, data in batches, fewer copies, a higher limit.

If memory grew steadily, the advice names the reason that the recording shows.
For clear_session() and gc.collect() the advice states what they free, and when they free nothing. Measured with Keras 3.15
and TensorFlow 2.21 on a CPU, in kernels that fitted 12 new models of 9 MB one after the other: each fit left behind 30 MiB
(95 %: 5 to 55) without clear_session(), and 30 MiB (13 to 46) with it before each model. Source:
https://www.tensorflow.org/api_docs/python/tf/keras/backend/clear_session (what it frees: the state of models built before),
https://www.tensorflow.org/guide/function#controlling_retracing, https://www.tensorflow.org/guide/data_performance#caching
"""

from __future__ import annotations

import re

from ..kept_data import Holder, holders_text, large_part
from ..memory.limits import Limit, LimitKind
from ..units import human_bytes
from .activity import largest_arrays, last_fit
from .evidence import Evidence
from .finding import Advice
from .fitted_models import OWN_PROCESS
from .leak import Leak, Per
from .memory import SPARE_BYTES, children_fact, growth_fact
from .moments import grown_arrays, kept_at_stop, kept_by_loop
from .verdict import record_is_old

FEWER_WORKERS = "Use fewer worker processes, or give each one less data."
_SETTERS = {
    LimitKind.CGROUP: "The administrator of this container, batch job or service sets the limit.",
    LimitKind.ADDRESS_SPACE: "It is set by `ulimit -v` in the shell, batch system or service that started Jupyter, or by the notebook itself.",
    LimitKind.DATA: "It is set by `ulimit -d` in the shell, batch system or service that started Jupyter, or by the notebook itself.",
}
# I tensorflow/core/kernels/data/shuffle_dataset_op.cc:452] ShuffleDatasetV3:12: Filling up shuffle buffer (this may take a
# while): 3471 of 20000. Source: tensorflow/core/kernels/data/shuffle_dataset_op.cc; written every ten seconds.
_FILLING = re.compile(
    r"Filling up shuffle buffer \(this may take a while\): (\d{1,12}) of (\d{1,12})"
)
_FILLED = "Shuffle buffer filled"
# WARNING:tensorflow:5 out of the last 5 calls to <function ...> triggered tf.function retracing.
_RETRACING = "triggered tf.function retracing"


def memory_advice(seen: Evidence, limit: Limit | None) -> tuple[Advice, ...]:
    """What to change about this run, the most effective first, at most three.

    Args:
        limit: The limit that ended the run; for a limit of the process, the one that refused memory. None = not known.
    """
    found: list[Advice] = []
    arrays = largest_arrays(seen)
    if (children := children_fact(seen)) is not None:
        found.append(Advice(FEWER_WORKERS, f"{children.text}."))
    if seen.growth is not None:
        found += leak_advice(seen, seen.growth)[:2]
    elif held_at_stop := kept_at_stop(seen):
        found.append(_kept(held_at_stop))
    else:
        found += _pipeline_advice(seen)
        if not found and limit is not None:
            found += _batch_advice(seen, limit)
    if arrays and arrays[0][1] > 4 * SPARE_BYTES:
        held = ", ".join(f"{name} {human_bytes(size)}" for name, size in arrays[:3])
        found.append(
            Advice(
                "Feed the data in batches instead of one array in memory.",
                f"Largest arrays when the last cell ended: {held}. Keras copies a whole array before it trains; "
                "a keras.utils.PyDataset or tf.data pipeline delivers one batch at a time.",
            )
        )
    if not found:
        grown = growth_fact(seen)
        found.append(
            Advice(
                "Load less data at once, or free data that is no longer needed before this cell.",
                f"{grown.text}." if grown else "",
            )
        )
    if limit is not None and limit.kind in _SETTERS and len(found) < 3:
        raising = f"Or raise the limit of {human_bytes(limit.size_bytes)}."
        found.append(Advice(raising, _SETTERS[limit.kind]))
    return tuple(found[:3])


def _pipeline_advice(seen: Evidence) -> list[Advice]:
    """Smaller buffers of the data pipeline, if they may have needed half of what the run needed."""
    buffer = [line for line in seen.stderr_lines if _FILLED in line or _FILLING.search(line)]
    filling = _FILLING.search(buffer[-1]) if buffer else None
    if filling is not None and not record_is_old(buffer[-1], seen.died):
        have, wanted = int(filling[1]), int(filling[2])
        return [
            Advice(
                "Shuffle file names or numbers before the data are loaded, or use a smaller shuffle buffer.",
                f"TensorFlow was filling a shuffle buffer just before: it had {have:,} of {wanted:,} elements in memory.",
            )
        ]
    fit, peak = last_fit(seen), seen.peak()
    if fit is None or not (fit.rss_bytes and peak):
        return []
    added = peak - fit.rss_bytes
    return [
        Advice(
            f"Let the data pipeline keep less in memory: {human_bytes(kept.size_bytes)} in one step.",
            f"{kept.text} Memory grew by {human_bytes(added)} in this {fit.name}.",
        )
        for kept in large_part(fit.kept_data, added)
    ]


def _batch_advice(seen: Evidence, limit: Limit) -> list[Advice]:
    """A smaller batch for the fit that ran; empty when none can be estimated, as for a limit of the address space."""
    fit, peak = last_fit(seen), seen.peak()
    if limit.is_ulimit or fit is None or not (fit.rss_bytes and fit.batch_size and peak):
        return []
    base = fit.rss_bytes
    smaller = next_batch_size(fit.batch_size, base, peak, limit.size_bytes)
    if smaller is None:
        return []
    used = f"batch size {fit.batch_size} needed more than {human_bytes(peak - base)}, in addition to the {human_bytes(base)} in use when {fit.method} started"
    text = f"The {used}; the limit is {limit.text()}."
    code = fit.batch_place.code(fit.method, smaller)
    if code is None:
        text += f" To set it: {fit.batch_place.change(fit.method, smaller)}."
    found = [Advice(f"Use a smaller batch: {smaller} is an estimate to try next.", text, code)]
    if fit.method == "fit" and fit.optimizer and fit.batch_size // smaller > 1:
        found.append(
            Advice(
                "Keep the effective batch size, if the result depends on it.",
                "Keras 3 can accumulate the gradients of several small batches before each update.",
                f"keras.optimizers.{fit.optimizer}(gradient_accumulation_steps={fit.batch_size // smaller})",
            )
        )
    return found


def next_batch_size(
    batch_size: int, base_bytes: int, peak_bytes: int, limit_bytes: int
) -> int | None:
    """Estimate a batch size to try next: a power of two, smaller than the one that failed.

    The estimate assumes that memory is proportional to the batch size. The peak is where the run was stopped; the batch
    may have needed more, so the result is half of the batch size that would fit. None when a smaller batch cannot help.
    """
    room = 0.9 * limit_bytes - base_bytes
    needed = peak_bytes - base_bytes
    if room <= 0 or needed < SPARE_BYTES or batch_size < 2:
        return None
    fits = batch_size * min(1.0, room / needed) / 2
    return 1 << (int(fits).bit_length() - 1) if fits >= 1 else None


def leak_advice(seen: Evidence, found: Leak) -> tuple[Advice, ...]:
    """Advice for growing host memory, the most effective first, at most three."""
    advice = [_kept(kept)] if (kept := kept_by_loop(seen)) else []
    new_models = _new_models(found)
    advice += new_models
    if any(_RETRACING in line for line in seen.stderr_lines):
        advice.append(
            Advice(
                "Call functions made by tf.function with tensors, not with Python numbers.",
                "Each new Python value creates another graph, and TensorFlow keeps all of them: it warned about repeated retracing. "
                "clear_session() and gc.collect() do not free them. "
                "https://www.tensorflow.org/guide/function#controlling_retracing",
            )
        )
    arrays = grown_arrays(seen)
    if arrays:
        held = ", ".join(f"{n} from {human_bytes(a)} to {human_bytes(b)}" for n, a, b in arrays[:3])
        advice.append(
            Advice(
                "Check the arrays that grew at the same time.",
                f"They grew from cell to cell: {held}.",
            )
        )
    if not new_models:
        advice.append(_what_one_model_keeps(found))
    return tuple(advice[:3])


def general_leak_advice(found: Leak) -> Advice:
    """The most effective advice when only the growth is known."""
    return next(iter(_new_models(found)), _what_one_model_keeps(found))


def gpu_leak_advice(found: Leak) -> tuple[Advice, ...]:
    """Advice for growing GPU memory."""
    kept = Advice(
        "Keep numbers, not tensors, from one step to the next.",
        "A list of losses, predictions or states holds each tensor on the card. gc.collect() does not free what such a list "
        "still holds, and TensorFlow returns its memory to the card only when the process ends.",
        "losses.append(float(loss))",
    )
    return (*_new_models(found), kept)


def _new_models(found: Leak) -> tuple[Advice, ...]:
    """Advice if a loop builds a new model for each fit; otherwise none."""
    models = found.models
    if models is None or not models.are_built_in_a_loop:
        return ()
    own_process = Advice(
        OWN_PROCESS,
        f"A loop builds new models: {models.text} The memory of a process is freed when it ends.",
        "multiprocessing.get_context('spawn').Pool(1, maxtasksperchild=1).map(fit_one, settings)",
    )
    if models.is_session_cleared:
        return (own_process,)
    clear = Advice(
        "Do not rely on clear_session() alone.",
        "It frees what Keras itself keeps of earlier models, and in Keras 3 it also runs the garbage collector (with Keras "
        "2, call gc.collect() after it). It does not free what TensorFlow keeps of their graphs. Measured with Keras 3.15, the memory grew "
        "as fast with it as without. https://www.tensorflow.org/api_docs/python/tf/keras/backend/clear_session",
        "keras.backend.clear_session()  # first line of the loop, before the model is built",
    )
    return own_process, clear


def _kept(holders: list[Holder]) -> Advice:
    return Advice("Empty or shorten what grew at the same time.", holders_text(holders))


def _what_one_model_keeps(found: Leak) -> Advice:
    where = {Per.EPOCH: "epoch", Per.FIT: "fit", Per.RUN: "run of the cell", Per.STEPS: "step"}.get(
        found.per, "iteration"
    )
    text = (
        f"Each {where} leaves objects that are still referenced: a list that a callback or loop appends to (keep "
        "float(loss), not the tensor), a History object kept for each fit, or a function that is retraced for each Python "
        "value. clear_session() helps only where new models are built, and gc.collect() frees only unreferenced objects."
    )
    return Advice("Find out what the loop keeps.", text)
