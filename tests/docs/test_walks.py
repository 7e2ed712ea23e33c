"""The walks in CONTRIBUTING.md are true and short: each step is called by an earlier one, so no file in between is left out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import jupyter_tfguard
from tests.rigs.documents import ROOT

pytestmark = pytest.mark.quick

PACKAGE = Path(jupyter_tfguard.__file__).parent
FRONT_END = ROOT / "labextension" / "src"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# The most files that a walk may enter.
MOST = {"A sample": 16, "A crash": 18, "A stop": 14, "An estimate": 9, "A fit's progress": 14}
# A step that begins with this is called by a timer, a thread or a page, and reads what an earlier step has left.
BEGINS = "Meanwhile"


class Step(NamedTuple):
    """One step of a walk.

    Attributes:
        file: Below the package, or below ``labextension/src``.
        name: ``Class.method`` or ``function``; "" for a file of the front end.
        is_start: Nothing earlier in the walk calls it.
    """

    file: str
    name: str
    is_start: bool

    @property
    def path(self) -> Path:
        """The file."""
        folder = FRONT_END if self.file.endswith((".ts", ".tsx")) else PACKAGE
        return folder / self.file


def walk(title: str) -> list[Step]:
    part = re.search(rf"^### {re.escape(title)}\b.*?\n(.*?)(?=^#|\Z)", TEXT, re.M | re.S)
    assert part is not None, title
    found: list[Step] = []
    for step in re.findall(r"^\d+\. (.*?)(?=^\d+\. |^$|\Z)", part[1], re.M | re.S):
        places = re.findall(r"`([\w./]+\.(?:py|tsx?|c)):?([\w.]*)`", step)
        is_start = not found or step.startswith(BEGINS)
        found += [Step(*place, is_start and not number) for number, place in enumerate(places)]
    return found


@cache
def functions(path: Path) -> dict[str, ast.AST]:
    """Functions and classes of a file by name; methods as ``Class.method``."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            methods = (
                n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            found |= {f"{node.name}.{method.name}": method for method in methods}
    return found


def mentioned(node: ast.AST) -> set[str]:
    """Names that a piece of code calls or hands over."""
    found = (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute))
    return {n.id if isinstance(n, ast.Name) else n.attr for n in found}


@cache
def reached(path: Path, name: str) -> frozenset[str]:
    """What a function mentions, also by way of other functions of its file."""
    own, known, waiting, read = functions(path), set[str](), [name], set[str]()
    while waiting:
        at = waiting.pop()
        if at not in read:
            read.add(at)
            found = mentioned(own[at])
            known |= found
            waiting += [one for one in own if one.partition(".")[2] in found or one in found]
    return frozenset(known)


def is_called(step: Step, earlier: list[Step]) -> bool:
    """True if an earlier step calls this one, or hands it to something that calls it."""
    if step.path.suffix == ".py":
        parts = step.name.split(".")
        return any(
            one.path.suffix == ".py" and parts[-1] in reached(one.path, one.name) for one in earlier
        )
    # The front end: one of the two files imports the other.
    files = [one.path for one in earlier if one.path.suffix in (".ts", ".tsx")]
    return any(imports(step.path, other) or imports(other, step.path) for other in files)


def imports(path: Path, other: Path) -> bool:
    return (
        re.search(rf"from '[./\w]*/{re.escape(other.stem)}'", path.read_text(encoding="utf-8"))
        is not None
    )


def is_defined(step: Step) -> bool:
    if step.path.suffix == ".py":
        return step.name in functions(step.path)
    return (
        re.search(rf"\b{step.name}\(", step.path.read_text(encoding="utf-8")) is not None
        if step.name
        else step.path.is_file()
    )


@pytest.mark.parametrize("title", MOST)
def test_each_step_is_called_by_an_earlier_one(title: str) -> None:
    steps = walk(title)
    assert len(steps) > 4
    for number, step in enumerate(steps):
        assert is_defined(step), step
        assert step.is_start or is_called(step, steps[:number]), f"nothing before calls {step}"


@pytest.mark.parametrize(("title", "most"), MOST.items())
def test_a_walk_is_short(title: str, most: int) -> None:
    assert len({step.path for step in walk(title)}) <= most
