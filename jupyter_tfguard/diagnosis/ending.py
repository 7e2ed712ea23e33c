"""Facts that many rules use: how the process ended, and what a text says about the cause."""

from __future__ import annotations

from dataclasses import dataclass

from ..decode import number_of
from ..units import human_bytes
from .evidence import Evidence
from .exit_status import SIGNAL_NUMBERS
from .finding import Advice, Confidence, Fact, Finding, Source, quoted
from .log_lines import LogLine
from .os_log import OomKill
from .verdict import TextVerdict, native_text_is_old

_QUOTED = 400
_STDERR_END_SECONDS = 10.0


def exit_fact(seen: Evidence) -> Fact:
    """How the process ended, and the source of that fact."""
    signal, code = seen.exit_signal, seen.exit_code
    if (around := seen.exit_code_around) is not None:
        meaning = f", which means {_named(signal)}" if signal is not None else ""
        text = f"The program that had started the kernel ended with exit code {around}{meaning}"
        return Fact(Source.SERVER, text)
    source = Source.SERVER if seen.exit_was_seen else Source.KERNEL
    if signal is not None:
        first = seen.first_signal
        again = (
            ""
            if first in (None, signal)
            else f", which came while it wrote its stack traces at {_named(first)}"
        )
        return Fact(source, f"The kernel process was ended by {_named(signal)}{again}")
    if code is not None:
        return Fact(source, f"The kernel process ended by itself with exit code {code}")
    if seen.only_silent:
        text = (
            "Its recording has not changed for minutes; it is unknown whether the kernel still runs"
        )
        return Fact(source, text)
    return Fact(source, "The kernel process ended and recorded no reason")


def oom_fact(kill: OomKill) -> Fact:
    """The fact that the out-of-memory killer ended a process, with the line of the system log."""
    if kill.pid is None and "invoked oom-killer" in kill.line:
        text = f"The system log says that {kill.name} asked for memory when none was left"
        return quoted(text, kill.line)
    who = f"process {kill.pid}" if kill.pid is not None else "a process"
    held = (
        f"; it held {human_bytes(kill.anonymous_bytes)}" if kill.anonymous_bytes is not None else ""
    )
    text = f"The system log says that {who} was killed because memory ran out{held}"
    return quoted(text, kill.line)


def _named(signal: str | None) -> str:
    number = SIGNAL_NUMBERS.get(signal or "")
    return f"signal {number} ({signal})" if number else str(signal)


def sure(seen: Evidence, otherwise: Confidence = Confidence.LIKELY) -> Confidence:
    """CERTAIN when the watcher itself read the exit status. The caller must know that the status has no other cause."""
    return Confidence.CERTAIN if seen.exit_was_seen else otherwise


def starter_facts(seen: Evidence) -> tuple[Fact, ...]:
    """The fact that the program that started the kernel has ended too; killed with it if the system log says so."""
    if not seen.parent_gone:
        return ()
    pid = seen.header.get("parent_pid")
    own = isinstance(pid, int) and pid == seen.header.get("watcher_pid")
    starter = "Its Jupyter server" if own else "The program that had started it"
    if any(kill.pid == pid for kill in seen.system_log.oom_kills):
        return (Fact(Source.SYSTEM_LOG, f"{starter} (process {pid}) was also killed"),)
    return (Fact(Source.KERNEL, f"{starter} has also ended"),)


def stack_facts(seen: Evidence) -> tuple[Fact, ...]:
    """The innermost Python line at the fatal signal, and the line of the cell, if faulthandler could write them."""
    frame, cell = seen.last_python_frame, seen.last_cell_frame
    if frame is None:
        return ()
    called = f", called from {cell}" if cell and "ipykernel_" not in frame else ""
    where = cell if cell and not called else frame
    return (Fact(Source.KERNEL, f"Python was at {where}{called}"),)


def stderr_end(seen: Evidence) -> tuple[Fact, ...]:
    """The last line of the stderr tail, if there is one that was not written long before, such as by an import."""
    written = number_of((seen.kernel or {}).get("stderr_time"))
    if native_text_is_old(seen) or (written and seen.died - written > _STDERR_END_SECONDS):
        return ()
    lines = [line for line in seen.stderr_lines if line.strip()]
    return (Fact(Source.KERNEL, f"Last line on stderr: {lines[-1][:400]}"),) if lines else ()


def ending_chips(seen: Evidence) -> tuple[str, ...]:
    """``SIGABRT`` or ``exit code 1``; empty when neither is known."""
    if seen.first_signal is not None:
        return (seen.first_signal,)
    return (f"exit code {seen.exit_code}",) if seen.exit_code is not None else ()


@dataclass(frozen=True)
class TextEvidence:
    """What a log or the stderr tail says about one cause.

    Attributes:
        confidence: How sure.
        facts: The evidence.
        chips: How it ended, in a few words.
        message: The line that shows the cause, without timestamp and file.
        details: Named parts of that line, as defined in the table of messages.
    """

    confidence: Confidence
    facts: tuple[Fact, ...]
    chips: tuple[str, ...]
    message: str
    details: dict[str, str]

    def finding(self, *, title: str, short_title: str, advice: tuple[Advice, ...]) -> Finding:
        """The finding that rests on this text alone."""
        return Finding(
            self.confidence, title, short_title, because=self.facts, advice=advice, chips=self.chips
        )


def text_evidence(seen: Evidence, cause: str) -> TextEvidence | None:
    """The evidence for a cause in the text; None when the text shows another cause, or none."""
    verdict = seen.verdict
    if verdict is None or verdict.cause != cause:
        return None
    message = verdict.line.message if verdict.line is not None else ""
    details = dict(verdict.sign.details) if verdict.sign is not None else {}
    if seen.pasted is not None:
        chips = (seen.pasted.status.text,) if seen.pasted.status is not None else ()
        return TextEvidence(
            verdict.confidence, _pasted_facts(seen, verdict), chips, message, details
        )
    facts = [_native("Message on stderr", verdict.line)]
    if verdict.after is not None and verdict.after is not verdict.line:
        facts.append(_native("Final error", verdict.after))
    facts += [exit_fact(seen), *stack_facts(seen)]
    return TextEvidence(verdict.confidence, tuple(facts), ending_chips(seen), message, details)


def _native(says: str, line: LogLine | None) -> Fact:
    """A fact about a line that the kernel wrote, with the raw line if the sentence leaves out its time and file."""
    message = line.message if line is not None else ""
    text = f"{says}: {message[:_QUOTED]}"
    if line is None or line.text.strip() == message:
        return Fact(Source.KERNEL, text)
    return quoted(text, line.text, Source.KERNEL)


def _pasted_facts(seen: Evidence, verdict: TextVerdict) -> tuple[Fact, ...]:
    assert seen.pasted is not None
    survived = {sign.row.id: sign for sign in reversed(verdict.survived)}
    alarming = sorted(survived.values(), key=lambda sign: sign.index)[:5]
    facts = [_quoted(sign.line, sign.row.says) for sign in alarming]
    if verdict.line is not None:
        facts.append(_quoted(verdict.line, verdict.says))
    if verdict.after is not None:
        facts.append(_quoted(verdict.after, "a consequence"))
    if seen.pasted.status is not None:
        facts.append(Fact(Source.TEXT, f"As reported: {seen.pasted.status.text}"))
    if verdict.cause == "no_crash" and verdict.confidence is Confidence.POSSIBLE:
        facts.append(Fact(Source.TEXT, "The end of the program is not in this text"))
    if verdict.cause == "gpu_oom_other_process" and seen.story.starved_device is not None:
        line = seen.story.starved_device
        facts.insert(0, _quoted(line, "almost no memory was free when the program started"))
    return tuple(facts)


def _quoted(line: LogLine, says: str) -> Fact:
    text = " ".join(line.text.split())[:_QUOTED]
    source = Source.TEXT if line.number else Source.SYSTEM_LOG
    return Fact(source, f"{text} ({says})" if says else text, line.number or None)
