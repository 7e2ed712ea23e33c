"""Every command that README and documentation show is accepted by the real parser, and run here unless another test runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_tfguard.cli import main, make_parser
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.kernel import magics
from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.rigs.documents import ROOT, blocks, documents, mentions, notebooks, shell_commands
from tests.rigs.examples import bundle_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EVERYTHING = [*documents(), *notebooks()]
NAMES = [str(path.relative_to(ROOT)) for path in EVERYTHING]


# --- what readers type is known ------------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("path", EVERYTHING, ids=NAMES)
def test_mentioned_commands_and_magics_are_accepted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[object] = []
    for action in magics.actions().values():
        monkeypatch.setattr(magics, action.__name__, lambda *number: called.append(number))
    for text in mentions(path):
        program, *words = shlex.split(text.removeprefix("jupyter "))
        if program == "%tfguard":
            magics.tfguard(" ".join(words))
            assert called, text
        elif words and words != ["..."]:
            accept(words, text)


@pytest.mark.quick
def test_mentioned_commands_of_the_palette_exist() -> None:
    source = (ROOT / "labextension/src/commands.ts").read_text(encoding="utf-8")
    existing = set(re.findall(r"trans\.__\('(Show [^']+)'\)", source))
    mentioned = {
        name
        for path in EVERYTHING
        for name in re.findall(r'["*](Show (?:[A-Z]\w+|of|the|a|\s)+)["*]', path.read_text("utf-8"))
    }
    assert mentioned
    assert mentioned <= existing


def accept(words: list[str], text: str) -> None:
    """Parse as the command line does.

    Raises:
        AssertionError: The parser refuses.
    """
    try:
        make_parser().parse_args(words)
    except SystemExit as end:
        if end.code != 0:
            raise AssertionError(f"the parser refuses: {text}") from end


@pytest.mark.quick
@pytest.mark.parametrize("text", ["jupyter tfguard whi", "jupyter tfguard list --since 5"])
def test_a_command_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        accept(shlex.split(text)[2:], text)


@pytest.mark.quick
def test_a_magic_that_does_not_exist_is_refused() -> None:
    from IPython.core.error import UsageError

    with pytest.raises(UsageError):
        magics.tfguard("whi")


# --- each line of a shell block is run, or checked, or run by another test ------------------------------------------------


def is_run_by(test: str) -> Callable[[str], None]:
    """The command is run by another test, which exists."""

    def check(_: str) -> None:
        assert (ROOT / test).is_file()

    return check


def installs_extras(command: str) -> None:
    """Installed by the gate; here: the extras exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in re.findall(r"\[(\w+)\]", command):
        assert extra in project["optional-dependencies"], command


def runs_tests(command: str) -> None:
    """The gate runs them; here: markers and files exist."""
    words = shlex.split(command)[3:]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    markers = project["tool"]["pytest"]["ini_options"]["markers"]
    for word in words:
        known = word in ("-m", "FILE") or (ROOT / word).exists()
        assert known or any(marker.startswith(f"{word}:") for marker in markers), command


def is_a_module_or_script(command: str) -> None:
    """Long runs: here, the file exists."""
    words = shlex.split(command)
    name = words[2] if words[1] == "-m" else words[1]
    found = importlib.util.find_spec(name) if words[1] == "-m" else (ROOT / name).exists()
    assert found, command


def is_a_script_of_the_front_end(command: str) -> None:
    """``jlpm build``; the editable install of the gate runs it."""
    scripts = json.loads((ROOT / "labextension/package.json").read_text())["scripts"]
    assert shlex.split(command)[1] in scripts, command


def folder_exists(command: str) -> None:
    """``cd FOLDER``."""
    assert (ROOT / shlex.split(command)[1]).is_dir() or shlex.split(command)[1].isupper(), command


PYTHON = r"(?:\.venv/bin/)?python3? "
KINDS: dict[str, Callable[[str], None]] = {
    rf"{PYTHON}-m venv ": lambda _: None,  # of Python itself; the gate runs it
    rf"{PYTHON}-m pip install ": installs_extras,
    rf"{PYTHON}-m pytest": runs_tests,
    rf"{PYTHON}-m sphinx .*linkcheck": lambda _: None,  # needs the network
    rf"{PYTHON}-m sphinx ": is_run_by("tests/docs/test_site.py"),
    rf"{PYTHON}(?:-m )?tests[./]|{PYTHON}notebooks/": is_a_module_or_script,
    r"(?:\.venv/bin/)?jupyter tfguard demo": is_run_by("tests/cli/test_demo.py"),
    r"(?:\.venv/bin/)?jupyter tfguard doctor": is_run_by("tests/cli/test_doctor.py"),
    r"(?:\.venv/bin/)?jupyter tfguard ": lambda command: run_here(command),
    r"(?:\.venv/bin/)?jupyter lab\b": is_run_by("tests/browser/conftest.py"),
    r"jlpm ": is_a_script_of_the_front_end,
    r"cd ": folder_exists,
}


def run_here(command: str) -> None:
    """Run a command of ours in this process; it must do what the page says."""
    words = shlex.split(command.removeprefix(".venv/bin/"))[2:]
    if words[:2] == ["forget", "--all"]:
        words.append("--yes")  # it asks first, and here nobody answers
    assert main(words) == 0, command


@pytest.fixture
def reader(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with one report, a log, a log of the operating system, and a kernel of another environment."""
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    bundle["id"] = "20260921-141320-4711-0a1b"
    entry, report = to_entry_and_report(bundle, diagnose(bundle))
    BundleStore(bundles_folder()).save(bundle, report, entry)
    (home / "crash.log").write_text("MemoryError\n")
    (home / "dmesg.txt").write_text("")
    folder = home / "data/kernels/my-project"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "My project", "language": "python"})
    )
    monkeypatch.chdir(home)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("path", documents(), ids=NAMES[: len(documents())])
def test_commands_in_blocks_do_what_they_should(path: Path) -> None:
    for command in dict.fromkeys(shell_commands(path)):
        kind = next((kind for kind in KINDS if re.match(kind, command)), None)
        assert kind is not None, f"nobody runs this command of {path.name}: {command}"
        KINDS[kind](command)


@pytest.mark.quick
def test_every_block_of_a_page_has_a_language() -> None:
    for path in documents()[1:]:
        for block in blocks(path):
            assert block.language, f"{path.name}: {block.text[:60]}"
