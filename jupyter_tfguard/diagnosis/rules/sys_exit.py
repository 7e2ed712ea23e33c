"""The kernel process ended itself: quit() in a cell, ``os._exit(n)``, or native code that calls exit().

sys.exit() does not end the kernel: IPython catches it in a cell, and in a thread it ends only that thread.
"""

from __future__ import annotations

from ...record.events import QUIT, UNASKED, MemoryStopped
from ..activity import last_cell
from ..ending import exit_fact, stderr_end, sure, text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule

_AFTER_STOP_SECONDS = 10.0


@rule("sys_exit", needs=("exit.status",))
def sys_exit(seen: Evidence) -> Finding | None:
    """The code ended its own process: `quit()`, `exit()`, `os._exit()`, or native code that gives up with an exit code.

    The process ended with an exit code and without a signal. For `quit()` and `exit()` the kernel also recorded the request.
    `sys.exit()` in a cell does not end a kernel, because IPython catches it. A kernel also ends itself if its event loop ends: without
    a request, while a cell ran or right after a stop.
    """
    if (text := text_evidence(seen, "sys_exit")) is not None:
        return text.finding(
            title="The program ended its own process.",
            short_title="Ended itself",
            advice=(
                Advice(
                    "Do not call sys.exit(), quit() or exit() in notebooks.",
                    "To stop a cell, use `raise` or `return`.",
                ),
            ),
        )
    if seen.kernel_alive or seen.exit_signal is not None:
        return None
    code, quit_by_code = seen.exit_code, seen.end_reason == QUIT
    cell = last_cell(seen)
    where = f" in {cell.name}" if cell is not None and cell.running else ""
    if seen.end_reason == UNASKED:
        return _unasked(seen, where)
    if code is None and not quit_by_code:
        return None
    # ipykernel ends itself with this code once the program that started it is gone.
    if code == 1 and not seen.exit_was_seen and (seen.outlived_starter or seen.parent_gone):
        return None
    if quit_by_code:
        mark = Fact(Source.KERNEL, "The code in the notebook called quit() or exit()")
        # quit() and exit() end a kernel this way; with another status, something else was called too, or instead.
        other = Fact(Source.SERVER, f"The exit code was {code}, but quit() exits with 0")
        return Finding(
            # quit() is self-reported by the kernel; an exit code of 0 that the watcher read confirms it.
            Confidence.CERTAIN if code == 0 else Confidence.LIKELY,
            title="The code in the notebook ended the kernel by calling quit() or exit().",
            short_title="Ended by quit() or exit()",
            because=(mark, *((exit_fact(seen),) if code is not None else ())),
            against=(other,) if code else (),
            advice=(
                Advice(
                    "Do not call quit() or exit() in notebooks.",
                    "To stop a cell, use `raise` or `return`.",
                ),
            ),
            chips=(f"exit code {code}",) if code is not None else (),
        )
    # A kernel without a recording may be any kernel; xeus kernels turn their own SIGSEGV into exit code 1.
    handled = seen.kernel is None and bool(code)
    doubt = Fact(
        Source.SERVER,
        "Some kernels catch their own crash and exit with an exit code; this one has no recording that would show it",
    )
    return Finding(
        Confidence.POSSIBLE if seen.verdict is not None or handled else sure(seen),
        title=f"The kernel process ended itself with exit code {code}{where}.",
        short_title=f"Ended itself, exit code {code}",
        because=(exit_fact(seen), *stderr_end(seen)),
        against=(doubt,) if handled else (),
        advice=(
            Advice(
                "Find the call that ends the process.",
                "It is os._exit() in the code, or exit() in a native library. The last line on stderr is above, if there is one.",
            ),
        ),
        chips=(f"exit code {code}",),
    )


def _unasked(seen: Evidence, where: str) -> Finding:
    """The interpreter ended in an orderly way, but nobody had asked the kernel to end."""
    status = () if seen.exit_code is None else (exit_fact(seen),)
    mark = Fact(Source.KERNEL, "Python ended in an orderly way, without a request for shutdown")
    stops = [event.time or 0.0 for event in seen.journal if isinstance(event, MemoryStopped)]
    said = "Right before, tfguard had stopped a cell because memory was nearly full"
    is_near = bool(stops) and seen.died - stops[-1] < _AFTER_STOP_SECONDS
    stopped = (Fact(Source.KERNEL, said),) if is_near else ()
    return Finding(
        Confidence.LIKELY,
        title=f"The kernel's event loop ended{where}, although nothing had asked the kernel to end.",
        short_title="Event loop ended",
        because=(mark, *stopped, *status, *stderr_end(seen)),
        advice=(
            Advice(
                "Do not stop the kernel's event loop, and let no KeyboardInterrupt or MemoryError leave a task.",
                "An exception in a task or callback of asyncio can end the loop in which the kernel itself runs. asyncio.run() in a "
                "thread, or a script, has a loop of its own.",
            ),
        ),
    )
