"""An invalid memory access in native code: SIGSEGV, and SIGBUS without evidence of shared memory."""

from __future__ import annotations

from ..activity import last_fit
from ..ending import exit_fact, last_words, stack_facts, sure
from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule("segfault_native", needs=("exit.status", "kernel.recording"))
def segfault_native(seen: Evidence) -> Finding | None:
    text = told(seen, "segfault_native")
    if text is None and (seen.kernel_alive or seen.first_signal not in ("SIGSEGV", "SIGBUS")):
        return None
    frame = seen.last_cell_frame or seen.last_python_frame
    advice = []
    if frame is not None:
        advice.append(
            Advice("Look at the Python line that called into native code.", f"It was {frame}.")
        )
    if last_fit(seen) is not None:
        how = "Run the same fit with few steps and without compiled functions, to see which operation it is."
        advice.append(Advice("Find the operation.", how, "tf.config.run_functions_eagerly(True)"))
    reason = "Packages built against other versions of NumPy, CUDA or each other are the usual reason outside code of one's own."
    advice.append(
        Advice("Check what was installed or upgraded last.", reason, "python -m pip check")
    )
    if text is not None:
        return text.finding(
            title="Native code accessed invalid memory and the program crashed.",
            short_title="Crash in native code",
            advice=(
                Advice(
                    "Let Python name the line that called into native code.",
                    "",
                    "python -X faulthandler script.py  # in a notebook: import faulthandler; faulthandler.enable()",
                ),
                *advice,
            ),
        )
    name = "Bus error" if seen.first_signal == "SIGBUS" else "Segmentation fault"
    what = (
        "touched memory that is not there"
        if seen.first_signal == "SIGBUS"
        else "accessed invalid memory"
    )
    return Finding(
        sure(seen),
        title=f"Native code {what} and the kernel crashed ({name.lower()}).",
        short_title=f"{name} in native code",
        because=(exit_fact(seen), *stack_facts(seen), *last_words(seen)),
        advice=tuple(advice[:3]),
        chips=(
            seen.first_signal or "",
            *((f"faulthandler: {seen.fault_title}",) if seen.fault_title else ()),
        ),
    )
