"""`jupyter tfguard enable`: the file of a kernel gets one word, and is given back byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.enable_rig import CONFIG_FILE, enable, refusal
from tests.rigs.environments import write_kernel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="virtual environments of POSIX")


# --- the file


def test_one_word_is_added_and_off_gives_the_same_bytes_back(kernels: Path, linked: Path) -> None:
    before = write_kernel(kernels / "other", linked)
    change = enable("other")
    assert change["done"] == "enabled"
    assert change["versions"]["ipykernel"]
    assert change["versions"]["tensorflow"] is None
    old, new = json.loads(before), json.loads((kernels / "other/kernel.json").read_text())
    assert new["argv"][:-1] == old["argv"]
    assert new["argv"][-1].startswith("--config=")
    assert new["argv"][-1].endswith(CONFIG_FILE)
    assert new | {"argv": None} == old | {"argv": None}
    assert enable("other", "--off")["done"] == "disabled"
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()
    assert [path.name for path in (kernels / "other").iterdir()] == ["kernel.json"]


def test_people_read_a_sentence_per_line(kernels: Path, linked: Path) -> None:
    write_kernel(kernels / "other", linked)
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_tfguard", "enable", "--kernel", "other"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("Kernel other (Python 3.")
    assert done.stdout.splitlines()[-1] == "Undo: jupyter tfguard enable --kernel other --off"


def test_doing_it_twice_changes_nothing(kernels: Path, linked: Path) -> None:
    before = write_kernel(kernels / "other", linked)
    enable("other")
    text = (kernels / "other/kernel.json").read_bytes()
    assert enable("OTHER")["done"] == "enabled before"
    assert (kernels / "other/kernel.json").read_bytes() == text
    enable("other", "--off")
    assert enable("other", "--off")["done"] == "was not enabled"
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()


def test_what_somebody_edited_meanwhile_stays(kernels: Path, linked: Path) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    content = json.loads(file.read_text())
    content["display_name"] = "Renamed"
    file.write_text(json.dumps(content))
    enable("other", "--off")
    found = json.loads(file.read_text())
    assert found["display_name"] == "Renamed"
    assert CONFIG_FILE not in file.read_text()


def test_a_word_of_a_tfguard_that_moved_is_replaced(kernels: Path, linked: Path) -> None:
    before = write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    old = next(word for word in json.loads(file.read_text())["argv"] if "tfguard" in word)
    moved = file.read_bytes().replace(old.encode(), f"--config=/gone/{CONFIG_FILE}".encode())
    file.write_bytes(moved)
    assert enable("other")["done"] == "enabled"
    assert old in json.loads(file.read_text())["argv"]
    assert "/gone" not in file.read_text()
    enable("other", "--off")
    assert file.read_bytes() == before.encode()


@pytest.mark.parametrize("why", ["link", "folder"])
def test_a_file_that_must_not_be_changed_is_left_with_the_way_to_copy_it(
    home: Path, kernels: Path, linked: Path, why: str
) -> None:
    before = write_kernel(kernels / "other", linked)
    if why == "link":
        (kernels / "other/kernel.json").rename(home / "store.json")
        (kernels / "other/kernel.json").symlink_to(home / "store.json")
    elif os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    else:
        (kernels / "other").chmod(0o500)
    assert f"jupyter kernelspec install --user {kernels / 'other'}" in refusal("other")
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()
    assert [path.name for path in (kernels / "other").iterdir()] == ["kernel.json"]


# --- refusals


def test_an_unknown_name_is_answered_with_the_known_ones(kernels: Path, linked: Path) -> None:
    write_kernel(kernels / "other", linked)
    told = refusal("nix")
    assert "'nix'" in told
    assert "other" in told
    assert "python3" in told


def test_a_kernel_with_its_own_guard_needs_nothing(home: Path) -> None:
    change = enable("python3")
    assert change["done"] == "has its own"
    assert sys.prefix in change["text"]


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["ir", "{connection_file}"], "not started by"),
        (["/nowhere/bin/python", "-m", "ipykernel_launcher"], "No such file"),
        (["/bin/false", "-m", "ipykernel_launcher"], "failed"),
        (["/bin/echo", "-m", "ipykernel_launcher"], "failed"),
    ],
    ids=["other-language", "gone", "broken", "no-python"],
)
def test_a_kernel_that_cannot_have_it_is_left_as_it_is(
    kernels: Path, linked: Path, argv: list[str], word: str
) -> None:
    before = write_kernel(kernels / "other", linked, argv=argv)
    assert word in refusal("other")
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "not a kernel specification"),
        (b'{"argv": "python"}', "not a kernel specification"),
        (b'{"argv": [], "metadata": "x"}', "not a kernel specification"),
        (b"\xff\xfe", "Could not read"),
    ],
)
def test_a_damaged_file_is_one_sentence(kernels: Path, content: bytes, word: str) -> None:
    (kernels / "broken").mkdir(parents=True)
    (kernels / "broken/kernel.json").write_bytes(content)
    for options in ((), ("--off",)):
        told = refusal("broken", *options)
        assert word in told
        assert "broken/kernel.json" in told


def test_a_configuration_file_of_the_users_own_is_not_pushed_aside(
    kernels: Path, linked: Path
) -> None:
    argv = [str(linked), "-m", "ipykernel_launcher", "--config=/my/own.py", "-f", "{x}"]
    write_kernel(kernels / "other", linked, argv=argv)
    assert "--config" in refusal("other")


def test_a_python_that_is_too_old_is_named(kernels: Path, home: Path) -> None:
    python = home / "python"
    python.write_text("#!/bin/sh\necho '[[3, 9, 18], \"/usr\", [], true]'\n")
    python.chmod(0o700)
    write_kernel(kernels / "other", python)
    assert "Python 3.9.18" in refusal("other")


def test_a_kernel_that_cannot_see_our_files_is_refused(kernels: Path, home: Path) -> None:
    python = home / "python"
    python.write_text("#!/bin/sh\necho '[[3, 12, 1], \"/usr\", [], false]'\n")
    python.chmod(0o700)
    write_kernel(kernels / "other", python)
    assert "container" in refusal("other")


def test_a_wrapper_before_the_interpreter_is_gone_through(kernels: Path, linked: Path) -> None:
    argv = ["env", "A=1", str(linked), "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f"]
    write_kernel(kernels / "other", linked, argv=argv)
    assert enable("other")["done"] == "enabled"
