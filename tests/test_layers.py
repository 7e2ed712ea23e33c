"""Who may import whom: the table of rooms and the absence of cycles, checked against the imports of the files."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jupyter_tfguard

pytestmark = pytest.mark.quick

PACKAGE = Path(jupyter_tfguard.__file__).parent
GROUND = {
    "_version",
    "errors",
    "units",
    "decode",
    "metrics",
    "trend",
    "config",
    "options",
    "shield",
    "threads",
    "places",
    "levels",
    "memory",
    "mounts",
    "procfs",
    "private_files",
    "redact",
    "growth_texts",
    "kept_data",
    "batch_place",
    "bus_id",
    "installed",
}
_INNER = {
    "collectors",
    "record",
    "sampler",
    "watch",
    "training",
    "predict",
    "guard",
    "postmortem",
    "diagnosis",
    "doctor",
    "report",
}
MAY_IMPORT = {
    "collectors": set(),
    "record": set(),
    "sampler": {"collectors", "record"},
    "watch": {"collectors", "record", "sampler"},
    "postmortem": {"collectors", "record", "watch", "diagnosis", "report"},
    "training": {"record"},
    "predict": {"collectors", "training"},
    "guard": {"collectors", "record", "training", "predict"},
    "diagnosis": {"record"},
    "kernelspecs": set(),
    "doctor": {"collectors", "record", "diagnosis", "guard", "kernelspecs"},
    "report": {"record", "diagnosis", "watch"},
    "kernel": _INNER,
    "server": _INNER | {"kernelspecs"},
    "cli": _INNER | {"demo", "kernelspecs"},
    "demo": {"collectors", "kernel", "record", "report"},
    "etc": {"kernel"},
    "alias": {"kernel"},
    "__main__": {"cli"},
    "__init__": {"guard", "kernel", "predict", "server"},
}
ONLY_IN = {
    "IPython": {"kernel"},
    "ipykernel": {"kernel"},
    "tornado": {"server"},
    "jupyter_server": {"server"},
}
NEVER = {"tensorflow", "keras", "tf_keras"}


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Absolute names that a file imports, with the line."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parts[: len(parts) - node.level]) if node.level else ""
            name = ".".join(filter(None, (base, node.module or "")))
            for alias in node.names:
                yield (f"{name}.{alias.name}" if name == "jupyter_tfguard" else name), node.lineno


FILES = sorted(p for p in PACKAGE.rglob("*.py") if "labextension" not in p.parts)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room in GROUND:
        allowed = GROUND
    else:
        assert room in MAY_IMPORT, f"{room} is not in the table of rooms"
        allowed = GROUND | {room} | MAY_IMPORT[room]
    for name, line in imports(path):
        top, _, rest = name.partition(".")
        if top == "jupyter_tfguard" and rest:
            assert rest.split(".")[0] in allowed | {"__version__"} or path.parent.name == "alias", (
                f"line {line}: {name}"
            )
        assert top not in NEVER or path.name == "trial_child.py", f"line {line}: {name}"
        assert top not in ONLY_IN or room in ONLY_IN[top], f"line {line}: {name}"
        assert top != "pynvml" or path.name == "gpu.py", f"line {line}: {name}"


def imported_files(path: Path) -> set[Path]:
    """Files of the package that a file imports, also inside of functions and under `TYPE_CHECKING`."""
    parts = path.relative_to(PACKAGE.parent).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            module = PACKAGE.parent.joinpath(
                *parts[: len(parts) - node.level + 1], *(node.module or "").split(".")
            )
            found |= {module.with_suffix(".py"), *(module / f"{a.name}.py" for a in node.names)}
    return {file for file in found if file.is_file()}


def cycle(start: Path, graph: dict[Path, set[Path]]) -> list[Path]:
    """The shortest way from a file back to itself; empty where there is none."""
    ways = [[start]]
    seen = set()
    for way in ways:
        for target in graph[way[-1]]:
            if target == start:
                return [*way, start]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return []


def test_no_file_imports_itself_through_others() -> None:
    graph = {path: imported_files(path) for path in FILES}
    assert graph[PACKAGE / "record/bundle.py"] >= {PACKAGE / "record/equal.py"}
    found = {path: cycle(path, graph) for path in FILES}
    assert [
        " -> ".join(str(file.relative_to(PACKAGE)) for file in way)
        for path, way in found.items()
        if way
    ] == []


SOURCES = Path(__file__).parents[1] / "labextension" / "src"
_TYPESCRIPT_IMPORT = re.compile(r"""(?:from|import|import\()\s*['"](\.[^'"]*)['"]""")


def test_no_typescript_file_imports_itself_through_others() -> None:
    files = {path.with_suffix(""): path for path in SOURCES.rglob("*.ts*")}
    graph = {
        path: {
            file
            for name in _TYPESCRIPT_IMPORT.findall(path.read_text(encoding="utf-8"))
            for target in [Path(os.path.normpath(path.parent / name))]
            if (file := files.get(target) or files.get(target / "index"))
        }
        for path in files.values()
    }
    assert graph[SOURCES / "live/HostMemory.tsx"] >= {SOURCES / "live/memoryDrawing.ts"}
    found = {path: cycle(path, graph) for path in graph}
    assert [
        " -> ".join(str(file.relative_to(SOURCES)) for file in way)
        for path, way in found.items()
        if way
    ] == []
