"""Who may import whom: the table of rooms, held against the imports that the files really have."""

from __future__ import annotations

import ast
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
    "metrics",
    "trend",
    "config",
    "options",
    "shield",
    "threads",
    "places",
    "limits",
    "mounts",
    "private_files",
    "redact",
    "secret_forms",
    "growth_words",
    "control_words",
    "bus_id",
}
_INNER = {
    "collectors",
    "record",
    "sampler",
    "watch",
    "training",
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
    "postmortem": {"collectors", "record"},
    "training": {"record"},
    "diagnosis": {"record"},
    "kernelspecs": set(),
    "doctor": {"collectors", "record", "diagnosis", "kernelspecs"},
    "report": {"record", "diagnosis", "postmortem"},
    "kernel": _INNER,
    "server": _INNER,
    "cli": _INNER | {"demo", "kernelspecs"},
    "demo": {"collectors", "record", "report"},
    "etc": {"kernel"},
    "alias": {"kernel"},
    "__main__": {"cli"},
    "__init__": {"kernel", "server"},
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
        assert top not in NEVER or path.name == "trial.py", f"line {line}: {name}"
        assert top not in ONLY_IN or room in ONLY_IN[top], f"line {line}: {name}"
        assert top != "pynvml" or path.name == "gpu.py", f"line {line}: {name}"
