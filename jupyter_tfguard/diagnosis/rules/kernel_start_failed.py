"""The kernel process never came up; no code of the user's ran."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("kernel_start_failed", needs=("exit.status",), outranks=("sys_exit",))
def kernel_start_failed(seen: Evidence) -> Finding | None:
    text = told(seen, "kernel_start_failed")
    if text is None:
        return None
    return text.finding(
        title="The kernel could not start.",
        short_title="Kernel did not start",
        advice=(
            Advice(
                "Install ipykernel in the environment that the kernel names, or repair it there.",
                "`jupyter kernelspec list` shows which folder; the file kernel.json in it names the interpreter.",
                "python -m pip install --upgrade ipykernel traitlets",
            ),
            Advice(
                "Start it by hand to see the whole message.",
                "Use the interpreter from kernel.json.",
                "python -m ipykernel_launcher --help",
            ),
        ),
    )
