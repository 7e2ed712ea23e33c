"""A Sphinx extension that writes the reference pages from the tables and the code that the product itself uses.

The pages go to ``notebooks/reference``, which git ignores. Whole pages end in ``.md``; parts, which end in ``.part.md``, are
included by pages that people write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import causes, changes, commands, messages, options, routes

FOLDER = "reference"


def pages() -> dict[str, str]:
    """Text of each generated file, by its path below :data:`FOLDER`."""
    return dict(_made())


def _made() -> Iterator[tuple[str, str]]:
    yield from causes.pages()
    yield "causes.part.md", causes.summary()
    yield "guides.part.md", _guides()
    yield "options.part.md", options.guard_options()
    yield "display.part.md", options.display_options()
    yield "changes.part.md", changes.changes()
    yield "commands.part.md", commands.commands()
    yield "magics.part.md", commands.magics()
    yield "checks.part.md", commands.checks()
    yield "routes.part.md", routes.routes()
    yield "event.part.md", routes.event()
    yield "messages.part.md", messages.types()


def _guides() -> str:
    """The part of the table of contents with the notebooks, and the comparison, whose figures a script makes."""
    here = Path(__file__).parents[1]
    found = [
        *here.glob("*.ipynb"),
        *sorted(here.glob("guides/*.ipynb")),
        *here.glob("comparison.md"),
    ]
    names = (path.relative_to(here).with_suffix("").as_posix() for path in found)
    listed = "\n".join(names)
    return f"```{{toctree}}\n:caption: Guides that run\n:maxdepth: 1\n\n{listed}\n```\n"


def write(folder: Path) -> None:
    """Write all pages; files that are as they should be are not touched, so that a build reads only what is new."""
    made = pages()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in made:
            path.unlink()


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx: write before it looks for pages."""
    os.environ["TZ"] = "UTC"  # reports show local times
    time.tzset()
    write(Path(app.srcdir) / FOLDER)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
