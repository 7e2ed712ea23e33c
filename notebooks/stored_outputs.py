"""Stored outputs of the guides without what names a machine or a person, or changes with each run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from jupyter_tfguard.report.anonymous import Anonymous, Identity

_REPOSITORY = Path(__file__).parents[1]
# What TensorFlow prints when it starts: I0000 00:00:1795579505.726255    6199 port.cc:153] oneDNN custom operations are on.
_STARTUP = re.compile(
    r"(?:WARNING: All log messages before absl|[IWE]\d{4} \d\d:\d\d:[\d.]+ )[^\n]*\n?"
)
# Made after paths and names were replaced.
_CHANGES = (
    (re.compile(r"^  ([IWEF])\d{4} \d\d:\d\d:[\d.]+ +\d+ ", re.MULTILINE), r"  \1 [time] "),
    (re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?\b"), "[time]"),
    (re.compile(r"\b20\d{6}-\d{6}-\d+-[0-9a-f]{8}\b"), "[id]"),  # of a report
    (re.compile(r"\b(pid|PID|process|child) \d{2,}\b"), r"\1 [pid]"),
    (re.compile(r"\bline 1: +\d+ Killed"), "line 1: [pid] Killed"),  # of bash
    (re.compile(r"/tmp/ipykernel_\d+/\d+\.py"), "/tmp/ipykernel/cell.py"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x[address]"),
    (re.compile(r"tfguard-demo-\d+-\d+"), "tfguard-demo"),
    (re.compile(r"\bdied at \d\d:\d\d\b"), "died at [time]"),
)


def normalise(notebook: Any, work: Path) -> None:
    """Change the outputs of a notebook that was run in the folder `work`."""
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    notebook.metadata.pop("widgets", None)
    changed = _Changed(work)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            kept = [output for output in _merged(cell.outputs) if not _is_startup(output)]
            cell.outputs = [changed.value(output) for output in kept]


def _is_startup(output: Any) -> bool:
    return output.get("name") == "stderr" and _STARTUP.sub("", output.text).strip() == ""


def _merged(outputs: list[Any]) -> list[Any]:
    """The outputs, with one for each stretch of text of the same stream: its pieces come as the kernel sent them."""
    found: list[Any] = []
    for output in outputs:
        if found and "name" in output and found[-1].get("name") == output.name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


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
