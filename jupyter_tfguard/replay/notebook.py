"""A notebook that shows the cells of a recording, as far as their text was kept."""

from __future__ import annotations

import re
from typing import Any

from ..diagnosis.typed import text_of, whole_of
from .kernel_name import KERNEL_NAME
from .tape import Tape

_CELLS_LIMIT = 200
_CELL_ID = re.compile(r"[a-zA-Z0-9-_]{1,64}")
_FIXED = {"editable": False, "deletable": False}
_UNKNOWN_TEXT = "# The text of this cell was not recorded."


def notebook_of(tape: Tape) -> dict[str, Any]:
    """The notebook's JSON: each cell once, where it first ran, with its last number; none can be edited."""
    cells: dict[str, dict[str, Any]] = {}
    for event in tape.events:
        if event.get("kind") != "cell_start":
            continue
        told = text_of(event.get("cell_id"))
        cell_id = told if told and _CELL_ID.fullmatch(told) else f"cell-{len(cells)}"
        cells[cell_id] = {
            "cell_type": "code",
            "execution_count": whole_of(event.get("execution_count")),
            "id": cell_id,
            "metadata": _FIXED,
            "outputs": [],
            "source": text_of(event.get("head")) or _UNKNOWN_TEXT,
        }
    kernel = {"display_name": "Replay", "language": "python", "name": KERNEL_NAME}
    return {
        "cells": list(cells.values())[-_CELLS_LIMIT:],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
