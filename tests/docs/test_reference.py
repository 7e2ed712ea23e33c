"""The generated pages name everything that the product has: causes, options, commands, magics, checks, routes, messages."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pytest

import jupyter_tfguard
from jupyter_tfguard.cli import make_parser
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.diagnosis.rule import all_rules
from jupyter_tfguard.kernel.changes import CHANGES
from jupyter_tfguard.kernel.magics import actions
from jupyter_tfguard.server.handlers import HANDLERS
from tests.rigs.documents import ROOT

pytestmark = pytest.mark.quick
PACKAGE = Path(jupyter_tfguard.__file__).parent


@functools.cache
def pages() -> dict[str, str]:
    """The generated pages, as the build of the site writes them."""
    sys.path.insert(0, str(ROOT / "notebooks"))
    try:
        from extension import pages as made
    finally:
        sys.path.remove(str(ROOT / "notebooks"))
    return made()


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.cause)
def test_every_cause_has_a_page_with_all_it_should_say(rule) -> None:
    page = pages()[f"causes/{rule.cause}.md"]
    assert page.startswith(f"(cause-{rule.cause})=\n# `{rule.cause}`\n\n{rule.means[:20]}")
    parts = ["## How it is recognised", "## How sure tfguard can be", "## An example"]
    assert all(part in page for part in parts)
    assert "## How to fix it" in page
    example = page.partition("## An example")[2]
    assert rule.cause in example
    assert f"(#cause-{rule.cause})" in pages()["causes.part.md"]


def test_there_is_no_page_of_a_cause_that_is_none() -> None:
    named = {name.split("/")[1] for name in pages() if name.startswith("causes/")}
    assert named == {f"{rule.cause}.md" for rule in all_rules()}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.cause)
def test_every_cause_says_what_it_means_and_how_it_is_recognised(rule) -> None:
    assert rule.means.endswith(".")
    assert rule.recognised.endswith(".")
    assert rule.means != rule.recognised


def test_every_option_is_described() -> None:
    text = pages()["options.part.md"]
    for name, trait in TfGuard.class_own_traits(config=True).items():
        section = text.partition(f"### `TfGuard.{name}`\n")[2].partition("\n###")[0]
        assert trait.help.split()[0] in section
        assert f"`{trait.default_value!r}`" in section


def test_every_command_and_each_of_its_arguments_is_described() -> None:
    text = pages()["commands.part.md"]
    files = [path.stem for path in (PACKAGE / "cli").glob("[a-z]*.py")]
    assert len(files) > 5
    for name in files:
        section = text.partition(f"### `jupyter tfguard {name}`\n")[2].partition("\n###")[0]
        for option in re.findall(r"\"(--[a-z-]+)\"", (PACKAGE / f"cli/{name}.py").read_text()):
            assert f"`{option}" in section, f"{name} {option}"
    assert make_parser().prog == "jupyter tfguard"


def test_every_magic_and_check_is_described() -> None:
    assert all(f"`%tfguard {name}`" in pages()["magics.part.md"] for name in actions())
    checks = [path.stem for path in (PACKAGE / "doctor/checks").glob("[a-z]*.py")]
    assert checks
    assert all(f"`{name}`" in pages()["checks.part.md"] for name in checks)


def test_every_change_of_a_kernel_is_described() -> None:
    text = pages()["changes.part.md"]
    for change in CHANGES:
        title = f"{change.name[0].upper()}{change.name[1:]}"
        entry = text.partition(f"\n{title}\n: ")[2].partition("\n")[0]
        assert change.what.split("`")[0] in entry, title
        assert "*Why:*" in entry, title


def test_every_route_is_described() -> None:
    text = pages()["routes.part.md"]
    source = (PACKAGE / "server/handlers.py").read_text(encoding="utf-8")
    for pattern, handler in HANDLERS:
        assert handler.__name__ in source
        path = pattern.replace("([^/]+)", "{id}").removesuffix("/?").removeprefix("/")
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{path}` |")]
        assert all(
            method.upper() in row for method in ("get", "post", "delete") if method in vars(handler)
        )


def test_every_message_of_the_front_end_is_described() -> None:
    text = pages()["messages.part.md"]
    for file in ("wire.ts", "wireReport.ts"):
        source = (ROOT / "labextension/src" / file).read_text(encoding="utf-8")
        names = re.findall(r"^export (?:type|interface) (\w+)", source, re.MULTILINE)
        assert names
        for name in names:
            section = text.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
            declared = section.partition("```typescript\n")[2].partition("```")[0]
            assert re.match(rf"export (?:type|interface) {name}\b", declared), name
            assert declared.count("{") == declared.count("}"), name
            assert declared.rstrip().endswith((";", "}")), name


def test_no_page_names_this_machine() -> None:
    for name, text in pages().items():
        assert str(ROOT) not in text, name
        assert not re.search(r"/(?:root|home)/(?!user)\w+/\.venv", text), name
