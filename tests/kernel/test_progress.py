"""The line of progress outside of kernels; in one: tests/predict/test_estimate.py."""

from __future__ import annotations

import io
import sys

import pytest

from jupyter_tfguard.kernel.progress import ProgressLine

pytestmark = pytest.mark.quick


class Terminal(io.StringIO):
    """Standard output on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "written"),
    [
        (Terminal(), "\rtrial 1\rdone   \n"),
        (io.StringIO(), "done\n"),
    ],
    ids=["terminal", "file"],
)
def test_the_last_line_stays(
    stream: io.StringIO, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    with ProgressLine() as line:
        for text in ("trial 1", "trial 1", "done"):
            line.show(text)
    assert stream.getvalue() == written
