"""Two OpenMP runtimes in one process: the second one refuses to start."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("libiomp_duplicate", needs=("kernel.recording",), outranks=("sys_exit",))
def libiomp_duplicate(seen: Evidence) -> Finding | None:
    text = told(seen, "libiomp_duplicate")
    if text is None:
        return None
    return text.finding(
        title="Two OpenMP runtimes were loaded into the kernel, and the second one gave up.",
        short_title="Two OpenMP runtimes",
        advice=(
            Advice(
                "Install the packages that bring OpenMP from one source.",
                "conda and pip packages (MKL, scikit-learn, PyTorch) often bring a copy each.",
            ),
        ),
    )
