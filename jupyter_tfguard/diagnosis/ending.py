"""How the process ended, as facts that many rules quote."""

from __future__ import annotations

from .evidence import Evidence
from .exit_status import SIGNAL_NUMBERS
from .finding import Confidence, Fact, Source, quoted
from .os_log import OomKill


def exit_fact(seen: Evidence) -> Fact:
    """How it ended, and who says so."""
    signal, code = seen.exit_signal, seen.exit_code
    if (around := seen.exit_code_around) is not None:
        meaning = f", which stands for {_named(signal)}" if signal is not None else ""
        text = f"The program around the kernel, which had started it, ended with exit code {around}{meaning}"
        return Fact(Source.SERVER, text)
    source = Source.SERVER if seen.exit_was_seen else Source.KERNEL
    if signal is not None:
        first = seen.first_signal
        again = (
            ""
            if first in (None, signal)
            else f", met while it wrote down its stacks at {_named(first)}"
        )
        return Fact(source, f"The kernel process was ended by {_named(signal)}{again}")
    if code is not None:
        return Fact(source, f"The kernel process ended by itself with exit code {code}")
    if seen.only_silent:
        text = "Its recording has not changed for minutes; whether the kernel still runs could not be seen from here"
        return Fact(source, text)
    return Fact(source, "The kernel process ended without leaving a mark")


def oom_fact(kill: OomKill) -> Fact:
    """That the out-of-memory killer ended a process, with the system log's own line."""
    who = f"process {kill.pid}" if kill.pid is not None else "a process"
    return quoted(f"The system log says that {who} was killed for want of memory", kill.line)


def _named(signal: str | None) -> str:
    number = SIGNAL_NUMBERS.get(signal or "")
    return f"signal {number} ({signal})" if number else str(signal)


def sure(seen: Evidence, otherwise: Confidence = Confidence.LIKELY) -> Confidence:
    """CERTAIN when the watcher itself saw the exit status, which the caller says fits nothing else."""
    return Confidence.CERTAIN if seen.exit_was_seen else otherwise


def starter_facts(seen: Evidence) -> tuple[Fact, ...]:
    """That the program which had started the kernel is gone too, killed with it if the system log says so."""
    if not seen.parent_gone:
        return ()
    pid = seen.header.get("parent_pid")
    own = isinstance(pid, int) and pid == seen.header.get("watcher_pid")
    starter = "Its Jupyter server" if own else "The program that had started it"
    if any(kill.pid == pid for kill in seen.system_log.oom_kills):
        return (Fact(Source.SYSTEM_LOG, f"{starter} (process {pid}) was killed with it"),)
    return (Fact(Source.KERNEL, f"{starter} has ended too"),)


def stack_facts(seen: Evidence) -> tuple[Fact, ...]:
    """The innermost Python line at the fatal signal, and the cell's own line, if faulthandler could write them."""
    frame, cell = seen.last_python_frame, seen.last_cell_frame
    if frame is None:
        return ()
    called = f", called from {cell}" if cell and "ipykernel_" not in frame else ""
    where = cell if cell and not called else frame
    return (Fact(Source.KERNEL, f"Python was at {where}{called}"),)


def last_words(seen: Evidence) -> tuple[Fact, ...]:
    """The last native line, if there is one."""
    lines = [line for line in seen.stderr_lines if line.strip()]
    return (Fact(Source.KERNEL, f"Last native line: {lines[-1][:400]}"),) if lines else ()


def ending_chips(seen: Evidence) -> tuple[str, ...]:
    """``SIGABRT`` or ``exit code 1``; nothing when neither is known."""
    if seen.first_signal is not None:
        return (seen.first_signal,)
    return (f"exit code {seen.exit_code}",) if seen.exit_code is not None else ()
