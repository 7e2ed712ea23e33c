"""Stored outputs of the guides without what names a machine or a person, or changes with each run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from jupyter_tfguard.report.anonymous import Anonymous, Identity

_REPOSITORY = Path(__file__).parents[1]
# What a text may be changed to, after paths and names were taken out.
_CHANGES = (
    (re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?\b"), "[time]"),
    (re.compile(r"\b20\d{6}-\d{6}-\d+-[0-9a-f]{8}\b"), "[id]"),  # of a report
    (re.compile(r"\b(pid|PID|process|child) \d{2,}\b"), r"\1 [pid]"),
    (re.compile(r"/tmp/ipykernel_\d+/\d+\.py"), "/tmp/ipykernel/cell.py"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x[address]"),
    (re.compile(r"tfguard-demo-\d+-\d+"), "tfguard-demo"),
    (re.compile(r"\bdied at \d\d:\d\d\b"), "died at [time]"),
)


def normalise(notebook: Any, work: Path) -> None:
    """Change the outputs of a notebook that was run in the folder `work`."""
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata.pop("widgets", None)
    changed = _Changed(work)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [changed.value(output) for output in cell.outputs]


class _Changed:
    def __init__(self, work: Path) -> None:
        self._folders = {
            str(work / "notebooks"): "~/notebooks",
            str(work / "home"): "~/.local/share",
            sys.prefix: "~/env",
            sys.base_prefix: "~/python",
            str(_REPOSITORY): "~/jupyter-tfguard",
            str(Path.home()): "~",
        }
        self._anonymous = Anonymous(Identity.of_here())

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return type(value)({name: self.value(item) for name, item in value.items()})
        return value

    def _text(self, text: str) -> str:
        for folder, name in self._folders.items():
            text = text.replace(folder, name)
        text = self._anonymous.text(text)
        for pattern, name in _CHANGES:
            text = pattern.sub(name, text)
        return text
