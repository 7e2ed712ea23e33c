"""Tests that were started in the background: a shell has them ignore signals, and what they start would ignore them too."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

IGNORED = ("SIGINT", "SIGQUIT", "SIGHUP")  # `tests &` in a script, and nohup

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.mark.parametrize("name", IGNORED)
def test_a_signal_ends_what_a_test_starts(name: str) -> None:
    code = f"import os, signal; os.kill(os.getpid(), signal.{name}); os._exit(7)"
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False)
    # Of SIGINT Python makes an exception, and ends itself by the signal then.
    assert ended.returncode == -signal.Signals[name]


def test_the_same_holds_for_tests_in_the_background() -> None:
    test = f"{__file__}::{test_a_signal_ends_what_a_test_starts.__name__}"
    start = 'trap "" INT QUIT HUP; exec "$@"'
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        ["sh", "-c", start, "sh", *pytest_command], capture_output=True, text=True, check=False
    )
    assert f"{len(IGNORED)} passed" in done.stdout, done.stdout
