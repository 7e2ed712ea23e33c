"""The examples of every rule: bundles and pasted logs that show its cause, and near misses that must not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.exit_status import exit_status
from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Example:
    """A bundle that fires a rule, or a near miss that must not."""

    cause: str
    name: str
    path: Path

    @property
    def bundle(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return loaded

    def __str__(self) -> str:
        return f"{self.cause}/{self.name}"


def examples(kind: str) -> list[Example]:
    """All examples whose name begins with `kind`: ``fires`` or ``quiet``."""
    paths = sorted(EXAMPLES.glob(f"*/{kind}-*.json"))
    return [Example(path.parent.name, path.stem, path) for path in paths]


@dataclass(frozen=True)
class TextExample:
    """A log as people paste it, that tells a cause, or a near miss.

    ``--- kernel log`` begins the lines of the operating system's log, ``--- exit N`` is an exit code.
    """

    cause: str
    name: str
    path: Path

    @property
    def pasted(self) -> Pasted:
        parts: dict[str, list[str]] = {"text": [], "kernel log": []}
        where, code = "text", None
        for line in self.path.read_text(encoding="utf-8").splitlines():
            if line.startswith("--- exit "):
                code = int(line.removeprefix("--- exit "))
            elif line.startswith("--- "):
                where = line.removeprefix("--- ")
            else:
                parts[where].append(line)
        text, kernel_log = ("\n".join(lines) for lines in parts.values())
        return Pasted(text, kernel_log, exit_status(code=code))

    def __str__(self) -> str:
        return f"{self.cause}/{self.name}"


def text_examples(kind: str) -> list[TextExample]:
    """All pasted examples whose name begins with `kind`: ``fires`` or ``quiet``."""
    paths = sorted(EXAMPLES.glob(f"*/{kind}-*.txt"))
    return [TextExample(path.parent.name, path.stem, path) for path in paths]


def bundle_of(path: str) -> dict[str, Any]:
    """The bundle of one example, by its path below the examples."""
    return Example("", "", EXAMPLES / path).bundle


def best_of(text: str, kernel_log: str = "", **status: Any) -> Finding:
    """The best explanation of a log; `status` is the exit status, as in :func:`exit_status`."""
    return explain(Pasted(text, kernel_log, exit_status(**status))).best
