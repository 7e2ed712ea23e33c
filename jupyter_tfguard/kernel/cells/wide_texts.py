"""Names a list of texts that NumPy was turning into an array, in which every text is as wide as the longest."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

import executing

from ...kept_data import Holder
from ...units import human_bytes
from .measure import local_variables

_CHARACTER_BYTES = 4  # of a fixed-width text in NumPy, which is UTF-32
_LEAST_COUNT = 100
# The longest text is the cause only if it is much longer than most.
_WIDER = 4


def wide_texts(frame: FrameType, added_bytes: int) -> Holder | None:
    """The first argument of the call that runs in this frame, if an array of its texts takes what the cell added.

    Args:
        frame: Of the user's code.
        added_bytes: What the cell has added so far; the array may not be full yet.
    """
    call = executing.Source.executing(frame).node
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Name):
        return None
    name = call.args[0].id
    texts: Any = local_variables(frame).get(name, frame.f_globals.get(name))
    if type(texts) not in (list, tuple) or len(texts) < _LEAST_COUNT:
        return None
    if any(type(one) is not str for one in texts):
        return None
    lengths = [len(one) for one in texts]
    longest = max(lengths)
    size = _CHARACTER_BYTES * longest * len(texts)
    if size < added_bytes or _WIDER * sum(lengths) > longest * len(texts):
        return None
    text = (
        f"An array of {name} makes each of its {len(texts):,} texts as wide as the longest, which has {longest:,} "
        f"characters: {human_bytes(size)}."
    )
    how = f"Cut or drop the longest, or keep {name} as a list or with dtype=object."
    return Holder(name, text, how, added_bytes, size, len(texts))
