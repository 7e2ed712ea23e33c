"""What to do about memory that grows steadily, by what the record shows of its reason.

Clearing Keras' session and collecting garbage are told with what they free, and where they free nothing. Measured with Keras
3.15 and TensorFlow 2.21 on a CPU, in kernels that fitted 12 new models of 9 MB one after the other: 30 MiB (95 %: 5 to 55) stayed
behind a fit without clear_session(), and 30 MiB (13 to 46) with it before each model. Source:
https://www.tensorflow.org/api_docs/python/tf/keras/backend/clear_session (what it frees: the state of models built before),
https://www.tensorflow.org/guide/function#controlling_retracing, https://www.tensorflow.org/guide/data_performance#caching
"""

from __future__ import annotations

import itertools
import re

from ..units import human_bytes
from .evidence import Evidence
from .finding import Advice
from .growth import Growth, Per
from .moments import grown_arrays

# "sequential_11": the names that Keras gives models of one kind, one after the other.
_NUMBERED = re.compile(r"^(?P<stem>.{1,80}?)(?:_(?P<number>\d{1,6}))?$")
# WARNING:tensorflow:5 out of the last 5 calls to <function ...> triggered tf.function retracing.
_RETRACING = "triggered tf.function retracing"


def leak_advice(seen: Evidence, found: Growth) -> tuple[Advice, ...]:
    """For the kernel's own memory, the most effective first, at most three."""
    advice: list[Advice] = []
    if models_are_built(found):
        advice += _new_models(found)
    if any(_RETRACING in line for line in seen.stderr_lines):
        advice.append(
            Advice(
                "Call functions made by tf.function with tensors, not with Python numbers.",
                "Each new Python value makes another graph, and all are kept: TensorFlow said that it traces again and again. "
                "clear_session() and gc.collect() free none of them. "
                "https://www.tensorflow.org/guide/function#controlling_retracing",
            )
        )
    arrays = grown_arrays(seen)
    if arrays:
        held = ", ".join(f"{n} from {human_bytes(a)} to {human_bytes(b)}" for n, a, b in arrays[:3])
        advice.append(
            Advice("Look at the arrays that grew with it.", f"From cell to cell: {held}.")
        )
    if not models_are_built(found):
        advice.append(_what_one_model_keeps(found))
    return tuple(advice[:3])


def gpu_leak_advice(found: Growth) -> tuple[Advice, ...]:
    """The same for the memory of a GPU."""
    kept = Advice(
        "Keep numbers, not tensors, from one step to the next.",
        "A list of losses, predictions or states holds each tensor on the card. gc.collect() frees nothing that such a list "
        "still holds, and TensorFlow gives its pool back to the card only when the process ends.",
        "losses.append(float(loss))",
    )
    return (*_new_models(found), kept) if models_are_built(found) else (kept,)


def models_are_built(found: Growth) -> bool:
    """True when the fits were of models that Keras numbered one after the other: a loop builds them."""
    if found.per is not Per.FIT or len(found.names) < 3:
        return False
    parts = [match for name in found.names if (match := _NUMBERED.match(name))]
    if len({part["stem"] for part in parts}) != 1:
        return False
    numbers = [int(part["number"] or 0) for part in parts]
    return all(a < b for a, b in itertools.pairwise(numbers))


def _new_models(found: Growth) -> tuple[Advice, ...]:
    return (
        Advice(
            "Run each fit in a process of its own, or build the model once and set its weights back.",
            f"A loop builds models: the fits were of {found.names[0]} to {found.names[-1]}. What a process held is free when it ends.",
            "multiprocessing.get_context('spawn').Pool(1, maxtasksperchild=1).map(fit_one, settings)",
        ),
        Advice(
            "Do not count on clear_session() alone.",
            "It frees what Keras itself keeps of models that were built before, and Keras 3 collects garbage with it (with Keras "
            "2 call gc.collect() after it); what TensorFlow keeps of their graphs stays. Measured with Keras 3.15, the memory grew "
            "as fast with it. https://www.tensorflow.org/api_docs/python/tf/keras/backend/clear_session",
            "keras.backend.clear_session()  # first line of the loop, before the model is built",
        ),
    )


def _what_one_model_keeps(found: Growth) -> Advice:
    where = {Per.EPOCH: "epoch", Per.FIT: "fit", Per.RUN: "run of the cell"}.get(found.per, "round")
    text = (
        f"Each {where} leaves something behind that is still held: a list that a callback or loop appends to (keep "
        "float(loss), not the tensor), a History that is kept per fit, a function that is traced anew for each Python value."
    )
    if found.per is Per.EPOCH:
        text += " A cache() of tf.data is not it: that is full after the first epoch. One model is trained, so"
        text += " clear_session() would help nothing,"
    elif found.per is Per.FIT and len(set(found.names)) == 1:
        text += f" All fits were of {found.names[-1]}: one model, or new ones after clear_session(), which then did not help;"
    else:
        text += " clear_session() helps only where new models are built,"
    text += " and gc.collect() frees only what nothing holds."
    return Advice("Look for what the loop keeps.", text)
