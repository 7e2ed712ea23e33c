"""The kernel process never came up; no code of the user's ran.

What it printed went to the server's own output, which nobody keeps here.
"""

from __future__ import annotations

from ..ending import ending_chips, exit_fact
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule
from ..told import told


@rule("kernel_start_failed", needs=("exit.status",), outranks=("sys_exit",))
def kernel_start_failed(seen: Evidence) -> Finding | None:
    text = told(seen, "kernel_start_failed")
    if text is None and not (seen.never_answered and seen.exit_code):
        return None
    silent = Fact(Source.SERVER, "The server heard nothing from it between its start and its end")
    printed = Advice(
        "Read what it printed: it stands in the terminal or the log of the Jupyter server.",
        "The lines just before `restarting kernel` are the kernel's.",
    )
    return Finding(
        text.confidence if text else Confidence.LIKELY,
        title="The kernel could not start.",
        short_title="Kernel did not start",
        because=text.facts if text else (exit_fact(seen), silent),
        chips=text.chips if text else ending_chips(seen),
        advice=(
            *(() if text else (printed,)),
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
