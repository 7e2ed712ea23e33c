"""Reads the table that ``%tfguard cells`` printed in a guide."""

from __future__ import annotations

import re

from notebooks.run_guides import GuideRun

_UNITS = {"B": 1 / 2**20, "KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}
_SIZE = r"([+-]?[\d.]+) (B|KiB|MiB|GiB)"
# [4]  history = model.fit(images, labels, bat…  6.2 s  +652 MiB  +640 MiB
_ROW = re.compile(rf"^\[(\d+)\] .* {_SIZE} +{_SIZE}$", re.MULTILINE)


def measured_mib(run: GuideRun, table: str, cell: str) -> tuple[float, float]:
    """How far memory rose in a cell, and how much stayed, in MiB.

    Args:
        run: The guide.
        table: The id of the cell with the table.
        cell: The id of the measured cell, in the same kernel.
    """
    (count,) = (found.execution_count for found in run.notebook.cells if found["id"] == cell)
    (row,) = (row for row in _ROW.findall(run.text(table)) if int(row[0]) == count)
    _, peak, peak_unit, kept, kept_unit = row
    return float(peak) * _UNITS[peak_unit], float(kept) * _UNITS[kept_unit]


def numbers(text: str, pattern: str) -> list[float]:
    """The numbers of the one place where `pattern` matches; each group is a number."""
    (found,) = re.finditer(pattern, text)
    return [float(number) for number in found.groups()]
