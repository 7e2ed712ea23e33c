"""What the header of a recording says about the program that started the kernel."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.kernel.header import HeaderKeeper, kernel_header
from jupyter_tfguard.places import KERNEL_VARIABLE

pytestmark = pytest.mark.quick

SHELL: Any = SimpleNamespace(kernel=SimpleNamespace(parent=None))


def test_the_end_of_the_starter_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[dict[str, Any]] = []
    recording: Any = SimpleNamespace(write_header=written.append)
    header = HeaderKeeper(lambda: recording)
    header.starter()
    assert written == []
    monkeypatch.setattr(os, "getppid", lambda: 1)
    header.starter()
    header.starter()
    assert [list(fields) for fields in written] == [["starter_gone"]]


def test_variables_of_a_kernel_are_not_those_of_kernels_that_its_code_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "parent.ipynb")
    monkeypatch.setenv("TFGUARD_WATCHER_PID", "4711")
    monkeypatch.setenv(KERNEL_VARIABLE, "")
    monkeypatch.delenv(KERNEL_VARIABLE)
    HeaderKeeper(lambda: None).claim_environment()
    header = kernel_header(SHELL)
    assert (header["notebook_path"], header["watcher_pid"]) == ("parent.ipynb", 4711)
    monkeypatch.setattr(os, "getpid", lambda: 99)  # a kernel that inherited all of it
    HeaderKeeper(lambda: None).claim_environment()
    header = kernel_header(SHELL)
    assert (header["notebook_path"], header["watcher_pid"]) == (None, None)


def test_a_kernel_that_another_program_starts_in_a_terminal_of_the_server_is_not_its(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFGUARD_WATCHER_PID", "4711")
    monkeypatch.delenv(KERNEL_VARIABLE, raising=False)
    for starter, watcher in (("4711", 4711), ("5000", None)):
        monkeypatch.setenv("JPY_PARENT_PID", starter)
        assert kernel_header(SHELL)["watcher_pid"] == watcher


def test_the_command_line_of_the_starter_is_kept() -> None:
    assert kernel_header(SHELL)["starter_command"]
