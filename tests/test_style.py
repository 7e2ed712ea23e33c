"""Formatters, linters and type checkers are clean; versions and names that must agree do."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from jupyter_tfguard import __version__
from tests.rigs.sentences import Sentence, sentences_of_front_end, sentences_of_python

ROOT = Path(__file__).parents[1]
# Not plain English, each with what we write instead. A word within a compound (stand-in) is another word.
WORDS = {
    r"tells?|telling|told": "report, detect, show, send",
    r"mend(?:s|ed|ing)?": "fix",
    r"anew": "again",
    r"whoever": "the program or person that",
    r"for ever": "forever, or a time",
    r"lies": "is in",
    r"stands? still|stood still|standstill": "hang",
    r"(?:stands?|stood)(?! for)": "is in",
    r"looks(?! (?:for|like))": "poll, check",
    r"witness(?:es)?|testimon(?:y|ies)": "tracked process, observation",
    r"(?:native|last) words": "stderr tail",
    r"lives? on": "is still running",
    r"own word": "self-reported",
}
NOT_PLAIN = re.compile(rf"(?<![-\w])(?:{'|'.join(WORDS)})(?![-\w])", re.IGNORECASE)


# The same for the names of functions, classes, variables and files. A part of a name is a word between "_" or capitals.
NAMES = {
    r"tells?|told": "report, publish",
    r"mend(?:s|ed)?|lies|whoever|anew": "as in texts",
    r"standstill": "hang",
    r"looks?": "poll, read, find, snapshot",
    r"witness(?:es)?|testimony": "tracked process, observation",
    r"deaths?|dead": "crash",
    r"doing": "activity",
    r"nobodys": "what it is then",
    r"w": "a word",
}
NOT_A_NAME = re.compile("|".join(NAMES), re.IGNORECASE)
# Keys of stored files: what wrote them may be an earlier version.
STORED_NAMES = {"earlier_deaths"}


def run(*command: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"


@pytest.mark.quick
def test_ruff_formats_and_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "format", "--check", ".")
    run(sys.executable, "-m", "ruff", "check", ".")


def test_mypy_is_content() -> None:
    run(sys.executable, "-m", "mypy")


@pytest.mark.quick
def test_front_end_and_python_have_one_version() -> None:
    package = json.loads((ROOT / "labextension/package.json").read_text())
    assert package["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.quick
def test_every_option_has_help() -> None:
    from jupyter_tfguard.config import TfGuard

    for name, trait in TfGuard.class_own_traits(config=True).items():
        assert trait.help, name


@pytest.mark.quick
def test_readme_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in set(re.findall(r"jupyter tfguard (\w+)", readme)):
        assert (ROOT / f"jupyter_tfguard/cli/{command}.py").is_file(), command


@functools.cache
def every() -> list[Sentence]:
    return [*sentences_of_python(), *sentences_of_front_end()]


def not_plain(sentences: Iterable[Sentence]) -> list[str]:
    found = ((one, NOT_PLAIN.search(one.text)) for one in sentences)
    return [f"{one.place}: {hit[0]!r} in {one.text}" for one, hit in found if hit]


@pytest.mark.quick
def test_texts_of_python_are_plain_english() -> None:
    assert not_plain(one for one in every() if "labextension" not in one.path.parts) == []


@pytest.mark.quick
@pytest.mark.parametrize(
    "start",
    [
        "Record kernels.",  # help of an option
        "Show the memory of this kernel",  # help of a magic
        "The kernel could not start.",  # a title of the table of rules
        "Python could not allocate memory",  # the catalog of messages
        "Times are UTC. Memory: {}.",  # a template
        "Crash of a kernel",  # an event
        "Machine out of memory",  # a finding
        "Show Why the Last Kernel Died",  # a command of the front end
        "Updates per second",  # a setting of the front end
    ],
)
def test_the_list_of_sentences_has_texts_of_every_kind_with_their_place(start: str) -> None:
    found = next(one for one in every() if one.text.startswith(start))
    lines = found.path.read_text(encoding="utf-8").splitlines()
    assert start.split("{")[0] in "\n".join(lines[found.line - 1 : found.line + 1])


@pytest.mark.quick
@pytest.mark.parametrize(("text", "is_plain"), [("It is told.", False), ("A stand-in.", True)])
def test_words_that_are_not_plain_are_found(text: str, is_plain: bool) -> None:
    assert bool(not_plain([Sentence(ROOT / "README.md", 1, text)])) is not is_plain


def names_in(path: Path) -> set[str]:
    """What a file of Python defines, and the file's own name."""
    found = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def not_a_name(name: str) -> bool:
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return name.strip("_") not in STORED_NAMES and any(map(NOT_A_NAME.fullmatch, parts))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "is_bad"),
    [
        ("_last_look", True),
        ("StandstillOf", True),
        ("told_by", True),
        ("lookup", False),
        ("word", False),
    ],
)
def test_names_that_are_not_plain_are_found(name: str, is_bad: bool) -> None:
    assert not_a_name(name) is is_bad


@pytest.mark.quick
def test_names_are_plain_english() -> None:
    paths = (ROOT / "jupyter_tfguard").rglob("*.py")
    found = {(path.name, name) for path in paths for name in names_in(path) if not_a_name(name)}
    assert found == set()


@pytest.mark.quick
def test_names_of_tests_are_plain_english() -> None:
    paths = [*(ROOT / "tests").rglob("test_*.py")]
    names = [name for path in paths for name in names_in(path) if name.startswith("test_")]
    assert [name for name in names if NOT_PLAIN.search(name.replace("_", " "))] == []


@pytest.mark.quick
def test_no_class_has_the_name_of_another() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "jupyter_tfguard").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and path.name != "documents.py":
                places.setdefault(node.name, []).append(path.name)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.quick
def test_texts_of_the_front_end_are_plain_english() -> None:
    assert not_plain(one for one in every() if "labextension" in one.path.parts) == []


def sentences_of_docs() -> Iterable[Sentence]:
    """Lines of the documents of the project and of the Markdown cells of the notebooks, without code."""
    folder = ROOT / "notebooks"
    found = [
        *ROOT.glob("*.md"),
        ROOT / "jupyter_tfguard/record/FORMAT.md",
        *folder.rglob("*.md"),
        *folder.rglob("*.ipynb"),
    ]
    for path in found:
        if "_build" in path.parts or path.parent.name == ".ipynb_checkpoints":
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
            text = "\n".join("".join(cell["source"]) for cell in cells)
        text = re.sub(r"^```.*?^```|`[^`\n]*`", blank, text, flags=re.DOTALL | re.MULTILINE)
        yield from (Sentence(path, n, line) for n, line in enumerate(text.splitlines(), start=1))


def blank(code: re.Match[str]) -> str:
    return "\n" * code[0].count("\n")


@pytest.mark.quick
def test_documents_are_plain_english() -> None:
    assert not_plain(sentences_of_docs()) == []
