"""Every text that a user can see, with its file and line: ``python -m tests.rigs.sentences FILE`` writes the list.

For reviews and translations. Python: strings with a space in them that are not docstrings, patterns or code. TOML: the
fields that reports show. Templates, events, settings, ``trans.__('...')`` of the front end. A value in a text is shown
as ``{}``. Names of metrics and other single words are not listed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from jupyter_tfguard.diagnosis import catalog

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jupyter_tfguard"
FRONT_END = ROOT / "labextension"

# The fields of a TOML table that a report shows, wherever they are.
SHOWN = {"says", "meaning", "advice"}
SHOWN_OF_RULES = {"title", "short_title", "text"}
# Docstrings that are shown as help.
SHOWN_DOCSTRINGS = {"kernel/magics.py": "tfguard"}
_PROSE = re.compile(r"[A-Za-z]{2,}[,.:;)]* +[A-Za-z{(]|[})] [a-z]{2,}|[a-z]{2,} [{(]")
_NOT_PROSE = re.compile(r"\\[dswbS(\[]|\(\?|\[\^|<svg|^\s*[\w.]+ = |\n    ")
_TRANSLATED = re.compile(
    r"""\b(?:__|_n)\(\s*((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|[\s,])+)"""
)
_LITERAL = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`""")


class Sentence(NamedTuple):
    """A text, and where it is."""

    path: Path
    line: int
    text: str

    @property
    def place(self) -> str:
        """File below the repository, and line."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def sentences_of_python() -> Iterator[Sentence]:
    """Texts of the package: code, tables, templates and events."""
    inside = ("labextension", "static")
    files = [
        p for p in sorted(PACKAGE.rglob("*")) if not {*inside} & {*p.relative_to(PACKAGE).parts}
    ]
    by_suffix = {".py": _of_code, ".toml": _of_table, ".html": _of_template, ".yaml": _of_schema}
    for path in files:
        if path.suffix in by_suffix:
            yield from by_suffix[path.suffix](path)


def sentences_of_front_end() -> Iterator[Sentence]:
    """Texts of the extension: what is translated, and the settings."""
    for path in sorted((FRONT_END / "src").rglob("*.ts*")):
        if "__tests__" not in path.parts:
            text = path.read_text(encoding="utf-8")
            for call in _TRANSLATED.finditer(text):
                for literal in _LITERAL.finditer(call[1]):
                    at = text.count("\n", 0, call.start(1) + literal.start()) + 1
                    yield Sentence(path, at, next(filter(None, literal.groups()), ""))
    for path in sorted((FRONT_END / "schema").glob("*.json")):
        yield from _of_schema(path)


def _of_code(path: Path) -> Iterator[Sentence]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shown = SHOWN_DOCSTRINGS.get(path.relative_to(PACKAGE).as_posix())
    passed_over: set[ast.AST] = set()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(node.value)  # a docstring
        elif isinstance(node, ast.JoinedStr):
            passed_over |= {part for part in node.values if isinstance(part, ast.Constant)}
            found.append((node, _joined(node)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append((node, node.value))
        if isinstance(node, ast.FunctionDef) and node.name == shown:
            yield Sentence(path, node.lineno + 1, ast.get_docstring(node) or "")
    for node, text in sorted(found, key=lambda item: (item[0].lineno, item[0].col_offset)):
        if node not in passed_over and _PROSE.search(text) and not _NOT_PROSE.search(text):
            yield Sentence(path, node.lineno, text)


def _joined(node: ast.JoinedStr) -> str:
    return "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)


def _of_table(path: Path) -> Iterator[Sentence]:
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = SHOWN_OF_RULES if path.parent.name == "rules" else SHOWN
    package = ".".join(path.relative_to(ROOT).parent.parts)
    line = 0
    for text in _fields(catalog.toml_file(package, path.stem), shown):
        start = text.split("\n")[0].replace("\\", "\\\\").replace('"', '\\"')[:60]
        later = range(line, len(lines))
        line = next((n for n in [*later, *range(line)] if start in lines[n]), line)
        yield Sentence(path, line + 1, text)


def _fields(value: Any, shown: set[str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _fields(item, shown)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in shown:
                yield from [inner] if isinstance(inner, str) else filter(_is_text, inner)
            if not isinstance(inner, str) and name != "about":
                yield from _fields(inner, shown)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _of_template(path: Path) -> Iterator[Sentence]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for quoted in re.findall(r'"([^"]* [^"]*)"', " ".join(re.findall(r"{{.*?}}", line))):
            yield Sentence(path, number, quoted)
        plain = re.sub(r"{{.*?}}", "{}", re.sub(r"{%.*?%}", "", line))
        for text in re.split(r"<[^<>]*>", plain):
            if re.search(r"[A-Za-z]{2}", text):
                yield Sentence(path, number, text.strip())


def _of_schema(path: Path) -> Iterator[Sentence]:
    """Titles and descriptions of a JSON schema, which is YAML too."""

    def walk(node: yaml.Node) -> Iterator[Sentence]:
        for pair in node.value if isinstance(node, yaml.CollectionNode) else ():
            key, inner = pair if isinstance(pair, tuple) else (None, pair)
            is_text = isinstance(inner, yaml.ScalarNode)
            if is_text and key is not None and key.value in ("title", "description"):
                yield Sentence(path, inner.start_mark.line + 1, inner.value)
            yield from walk(inner)

    yield from walk(yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader))


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for sentence in [*sentences_of_python(), *sentences_of_front_end()]:
            print(sentence.place, sentence.text.replace("\n", "\\n"), sep="\t", file=out)
