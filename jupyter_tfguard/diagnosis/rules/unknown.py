"""The cause is unknown. This finding is used when no other rule has one."""

from __future__ import annotations

import re

from ...units import human_bytes
from ..ending import exit_fact, stack_facts, stderr_end, text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..memory import (
    memory_source,
    near_limit,
    peak_chips,
    peak_fact,
    use_at_crash,
)
from ..memory_advice import memory_advice
from ..rule import rule
from ..signs import Role

# Meaning of the signals with which native code ends itself, as far as known.
_OF_NATIVE_CODE = {
    "SIGABRT": "abort() in native code, which printed no explanation",
    "SIGFPE": "an integer division by zero in native code",
}

_EXCEPTION = re.compile(r"[A-Za-z_][\w.]{0,120}")


@rule("unknown", needs=("exit.status", "kernel.recording"))
def unknown(seen: Evidence) -> Finding | None:
    """Nothing that was recorded shows why the kernel ended. tfguard does not guess.

    No other rule found a cause. The report still shows what is known: signal or exit code, memory, the last lines of stderr,
    the cell and the Python stack.
    """
    if seen.pasted is not None:
        return _of_text(seen)
    signal = seen.first_signal
    # A kill for lack of memory is a SIGKILL, which a kernel without a watcher cannot record.
    unseen = signal is None and not seen.exit_is_known and not seen.only_silent
    near = seen.memory_limit() if unseen and near_limit(seen) else None
    advice: tuple[Advice, ...] = ()
    if signal in _OF_NATIVE_CODE:
        frame = seen.last_cell_frame or seen.last_python_frame
        place = f"; Python was at {frame}" if frame else ""
        title = f"The kernel was ended by {signal}, the signal of {_OF_NATIVE_CODE[signal]}{place}."
        advice = _native_advice(seen, frame)
    elif signal is not None:
        title = f"The kernel was ended by {signal}; the reason is unknown."
    elif seen.only_silent:
        title = "The kernel's recording has not changed for minutes, and its machine is not reachable from here."
    elif near is not None:
        title = "The kernel ended near its memory limit without recording a reason. It may have run out of memory."
    elif seen.outlived_starter:
        title = "The kernel ended after the program that had started it."
    else:
        title = "The kernel ended without recording a reason, as after SIGKILL or os._exit()."
    because = [exit_fact(seen), *stack_facts(seen), *stderr_end(seen)]
    if seen.outlived_starter:
        text = "The process that had started the kernel ended first; most kernels then exit on their own"
        because.append(Fact(Source.KERNEL, text))
    if near is not None:
        used = f"{human_bytes(use_at_crash(seen))} of {near.text()} was in use"
        because.append(Fact(memory_source(seen), used))
    peak = peak_fact(seen)
    if peak is not None:
        because.append(peak)
    if seen.kernel is None:
        # `jupyter tfguard enable` does not work for every kernel; the doctor shows for which it does.
        advice = (
            Advice(
                "Install the guard in the environment of this kernel.",
                "Then the next report shows the cell, the stderr tail and the Python stack. "
                "`jupyter tfguard doctor` shows the command for a kernel of another environment.",
                "python -m pip install jupyter-tfguard",
            ),
        )
    elif not seen.exit_is_known and not advice:
        advice = (_watched_advice(seen),)
    if near is not None:
        advice = (*memory_advice(seen, near)[:2], *advice)
    return Finding(
        Confidence.POSSIBLE,
        title=title,
        short_title="Unknown, near the memory limit" if near else _short_title(signal),
        because=tuple(because),
        advice=advice,
        chips=(*((signal,) if signal else ()), *peak_chips(seen)),
    )


def _short_title(signal: str | None) -> str:
    if signal in _OF_NATIVE_CODE:
        return f"{signal} in native code"
    return f"Unknown, {signal}" if signal else "Unknown"


def _watched_advice(seen: Evidence) -> Advice:
    """How to get the exit status next time."""
    starter = str(seen.header.get("starter_command"))
    if "kernelgateway" in starter or "kernel_gateway" in starter:
        text = "A kernel gateway loads no server extension, so nobody reads the exit status. If memory ran out, the log names the killed process."
        command = "sudo dmesg --ctime | grep -i 'killed process'"
        return Advice(
            "Search the log of the operating system on the host of the gateway.", text, command
        )
    text = "A Jupyter server with jupyter-tfguard records the exit status of its kernels."
    return Advice("Start the kernel from a Jupyter server with jupyter-tfguard.", text)


def _native_advice(seen: Evidence, frame: str | None) -> tuple[Advice, ...]:
    line = Advice("Check the Python line that called native code.", f"It was {frame}.")
    stack = Advice(
        "Read the native stack.",
        "It is in the core file, if the system saves core files. `gdb` on a running process also shows it.",
        f"coredumpctl info {seen.pid}",
    )
    return (line, stack) if frame else (stack,)


def _of_text(seen: Evidence) -> Finding:
    text = text_evidence(seen, "unknown")
    if text is not None and seen.story.refuted and seen.story.roomy_device is not None:
        free, total = seen.story.roomy_device
        check = Advice(
            "Check whether the GPU driver, CUDA and cuDNN fit each other.",
            "A library that does not fit fails with the same message as one that finds no memory.",
            "jupyter tfguard doctor",
        )
        return Finding(
            Confidence.POSSIBLE,
            title=f"A CUDA library could not start, although {human_bytes(free)} of {human_bytes(total)} GPU memory was free.",
            short_title="CUDA library did not start",
            because=text.facts,
            advice=(check,),
            chips=text.chips,
        )
    raised = seen.story.first(Role.FAILED)
    if raised is not None and seen.story.ended is None and text is not None:
        name = _EXCEPTION.match(raised.line.message)
        return Finding(
            Confidence.POSSIBLE,
            title=f"The program raised an exception{f' ({name[0]})' if name else ''}; this text shows no crash of the process.",
            short_title="Python exception",
            because=text.facts,
            advice=(
                Advice(
                    "Read the exception and the last lines of its traceback.",
                    "They name the line of your code. An exception ends a script, but a notebook's kernel goes on after it.",
                ),
                Advice(
                    "If the kernel did die, add the end of the output, the exit code and the operating system's log.",
                    "",
                    "jupyter tfguard explain LOG --kernel-log KERNEL_LOG --exit-code N",
                ),
            ),
            chips=text.chips,
        )
    return Finding(
        Confidence.POSSIBLE,
        title="This text does not show why the program ended.",
        short_title="Unknown",
        because=text.facts if text is not None else (),
        advice=(
            Advice(
                "Add the end of the output, the exit code and the operating system's log.",
                "A message such as `kernel died` shows that it ended, not why.",
                "jupyter tfguard explain LOG --kernel-log KERNEL_LOG --exit-code N",
            ),
            Advice(
                "Install the guard, so that the next crash is recorded.",
                "",
                "python -m pip install jupyter-tfguard",
            ),
        ),
        chips=text.chips if text is not None else (),
    )
