"""README, pages and notebooks as tests see them: fenced blocks, and the commands that readers will type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"^ *(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^ *(?P=fence) *$", re.M | re.S
)
_SHELL = ("bash", "sh", "shell", "console")
# A block without a language is a command line where it begins like one.
_COMMAND = re.compile(r"^(?:\.venv/bin/|python3? |jupyter |cd |pip )")
_MENTION = re.compile(r"(?:jupyter tfguard|%tfguard)(?: [^`\n\"']*)?")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, empty where none is given, and its text."""

    language: str
    text: str

    @property
    def is_shell(self) -> bool:
        """True for lines to be typed in a terminal."""
        if self.language:
            return self.language in _SHELL
        return _COMMAND.match(self.text) is not None


def documents() -> list[Path]:
    """Everything that people read as Markdown, but what is generated or a record of the past."""
    pages = [*ROOT.glob("notebooks/*.md"), *ROOT.glob("notebooks/guides/*.md")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(pages)]


def notebooks() -> list[Path]:
    """The walk-through and the guides."""
    return sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("notebooks/guides/*.ipynb")])


def text_of(path: Path) -> str:
    """Text of a page; of a notebook the sources of its cells, those with code as fenced blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n\n".join(s if kind == "markdown" else f"```ipython\n{s}\n```" for kind, s in cells)


def blocks(path: Path) -> list[Block]:
    """All fenced blocks but directives."""
    found = _BLOCK.finditer(text_of(path))
    all_blocks = [Block(one["language"].strip(), one["text"]) for one in found]
    return [block for block in all_blocks if not block.language.startswith("{")]


def shell_commands(path: Path) -> Iterator[str]:
    """Each command of the shell blocks; those joined by ``&&`` one by one."""
    for block in blocks(path):
        if block.is_shell:
            joined = re.sub(r"\\\n\s*", "", block.text)
            for line in joined.splitlines():
                bare = line.split(" #")[0].strip()
                yield from (part.strip() for part in bare.split("&&") if part.strip())


def mentions(path: Path) -> Iterator[str]:
    """Each ``jupyter tfguard ...`` and ``%tfguard ...`` in code font or in a block; optional parts are left out."""
    text = text_of(path)
    code = [one[1] for one in re.finditer(r"(?<!`)`([^`\n]+)`(?!`)", text)]
    code += [line for block in blocks(path) for line in block.text.splitlines()]
    for line in code:
        for found in _MENTION.finditer(line.split("&&")[-1].split(" #")[0]):
            yield " ".join(re.sub(r"\[[^\]]*\]", "", found[0]).split())
