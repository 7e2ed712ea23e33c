"""The kernel process ended itself: quit() in a cell, ``os._exit(n)``, or native code that calls exit()."""

from __future__ import annotations

from ..ending import exit_fact, last_words
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule
from ..told import told


@rule("sys_exit", needs=("exit.status",))
def sys_exit(seen: Evidence) -> Finding | None:
    if (text := told(seen, "sys_exit")) is not None:
        return text.finding(
            title="The code ended its own process.",
            short_title="Ended itself",
            advice=(
                Advice(
                    "Leave sys.exit(), quit() and exit() out of notebooks.",
                    "A cell is stopped by `raise` or `return`.",
                ),
            ),
        )
    if seen.kernel_alive or seen.exit_signal is not None:
        return None
    code, quit_by_code = seen.exit_code, seen.end_reason == "quit"
    if code is None and not quit_by_code:
        return None
    if quit_by_code:
        mark = Fact(Source.KERNEL, "The code in the notebook asked for it: quit() or exit()")
        return Finding(
            # quit() is the kernel's own word; an exit code of 0 that was seen bears it out.
            Confidence.CERTAIN if code == 0 else Confidence.LIKELY,
            title="The code in the notebook ended the kernel: quit() or exit() was called.",
            short_title="Ended by quit() or exit()",
            because=(mark, *((exit_fact(seen),) if code is not None else ())),
            advice=(
                Advice(
                    "Leave quit() and exit() out of notebooks.",
                    "A cell is stopped by `raise` or `return`.",
                ),
            ),
            chips=(f"exit code {code}",) if code is not None else (),
        )
    return Finding(
        Confidence.POSSIBLE if seen.verdict is not None else Confidence.CERTAIN,
        title=f"The kernel process ended itself with exit code {code}.",
        short_title=f"Ended itself, exit code {code}",
        because=(exit_fact(seen), *last_words(seen)),
        advice=(
            Advice(
                "Look for a call that ends the process.",
                "os._exit() in the code, or a native library that gives up with exit(); its last native line is above, if it left one.",
            ),
        ),
        chips=(f"exit code {code}",),
    )
