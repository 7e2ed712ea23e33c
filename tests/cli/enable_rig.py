"""`jupyter tfguard enable` as a test calls it. Not a test."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest

from jupyter_tfguard.cli import main
from tests.rigs.schemas import matches

CONFIG_FILE = "jupyter_tfguard/kernel/enabled_config.py"


def enable(name: str, *options: str, **more: str) -> dict[str, Any]:
    code, out, told = command(name, *options, "--json", **more)
    assert code == 0, told
    found: dict[str, Any] = matches("change", json.loads(out))
    return found


def refusal(name: str, *options: str, **more: str) -> str:
    code, out, told = command(name, *options, **more)
    assert (code, out) == (2, "")
    assert told.startswith("jupyter tfguard: ")
    assert told.count("\n") == 1
    return told


def command(name: str, *options: str, **more: str) -> tuple[int, str, str]:
    """Exit code and what is printed, to stdout and stderr."""
    out, told = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
    ):
        for variable, value in more.items():
            patch.setenv(variable, value)
        code = main(["enable", "--kernel", name, *options])
    return code, out.getvalue(), told.getvalue()
