"""Every JSON message: from the types of the front end, with the samples that both sides are tested with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .markdown import block, prose

_ROOT = Path(__file__).parents[2]
_FILES = ("wireReport.ts", "wire.ts")
_TYPE = re.compile(
    r"(?:/\*\*(?P<doc>(?:(?!\*/).)*)\*/\n)?export (?:type|interface) (?P<name>\w+)", re.DOTALL
)
# Each type that a route or the stream sends whole, with its sample.
SAMPLES = {
    "CrashEntry": "crashes",
    "Report": "report",
    "Option": "options",
    "ExportPreview": "preview",
    "Status": "status",
    "Tick": "tick",
    "History": "history",
    "Fresh": "number",
    "LimitAhead": "limits",
}


def types() -> str:
    """A section for each type: what it is, its declaration, and a sample where there is one."""
    return "\n".join(_section(name, doc, text) for name, doc, text in declared())


def declared() -> Iterator[tuple[str, str, str]]:
    """Name, comment and declaration of each type that the front end reads."""
    for file in _FILES:
        text = (_ROOT / "labextension/src" / file).read_text(encoding="utf-8")
        for found in _TYPE.finditer(text):
            doc = re.sub(r"^\s*\* ?", "", found["doc"] or "", flags=re.MULTILINE)
            start = text.index("export ", found.start())
            yield found["name"], " ".join(doc.split()), _declaration(text[start:])


def _declaration(text: str) -> str:
    """Up to the semicolon or brace that ends it."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        ends_interface = letter == "}" and text.startswith("export interface")
        if depth == 0 and (letter == ";" or ends_interface):
            return text[: index + 1]
    raise ValueError(f"a type has no end: {text[:60]}")


def _section(name: str, doc: str, text: str) -> str:
    parts = [f"### `{name}`\n", *([prose(doc) + "\n"] if doc else []), block(text, "typescript")]
    if name in SAMPLES:
        sample = (_ROOT / f"tests/wire/{SAMPLES[name]}.json").read_text(encoding="utf-8")
        parts += ["<details><summary>A sample</summary>\n", block(sample, "json"), "</details>\n"]
    return "\n".join(parts)
