"""Which cause a text shows: a pasted log, or the stderr tail of a recording.

A pasted log is trusted. The stderr tail of a recording is self-reported by the kernel, so a cause based on it is never
more than *likely*, and the tail is used only for an end that it can explain.
"""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import dataclass

from ..decode import dict_of, number_of
from ..record.events import CellStart
from .exit_status import ExitStatus
from .finding import Confidence
from .log_lines import LogLine, is_cut_in_traceback
from .observed import Observed
from .os_log import runs_python
from .progress import epoch_number, is_result
from .remarks import is_on_gpu, says_that_it_hung
from .signs import Role, Sign
from .story import Story

# Number of last lines that can belong to the end; earlier lines belong to something else.
_LATE_LINES = 60
# Longest time between the last line and the end: exit handlers, release of memory, or a core file of many GiB.
_LATE_SECONDS = 60.0
# Longest time between the last line and the stacks that faulthandler writes immediately at a fatal signal.
_FAULT_SECONDS = 2.0
# Clocks of file systems tick every few milliseconds.
_TICK_SECONDS = 0.05
# "I0000 00:00:1700000000.123456": time of a record in Unix seconds, if its day is 0000.
_UNIX_TIME = re.compile(r"[IWEF]0000 00:00:(\d{9,12}(?:\.\d{1,6})?)")
# "2026-11-21 02:14:05.123456: F ...": local time of a record, in an unknown time zone.
_WALL_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d{1,9})?: [IWEF] ")
# Time zones differ by a multiple of this, and by 26 hours at most.
_ZONE_SECONDS = 900.0
_FARTHEST_SECONDS = 26 * 3600.0
# "python3[4711]: segfault at 0 ip ...", "process 4711 (python3)", "Process python3 pid 4711 thread python3"
_OF_PYTHON = re.compile(
    r"\b(?:i?python|ipykernel|jupyter)[\w.-]{0,20}(?:\[\d{1,10}\]|\)| pid \d{1,10} thread )"
)
# An exception that a missing file of CUDA can explain.
_ABOUT_GPU = re.compile(
    r"(?i)cuda|cudnn|cublas|gpu|nvidia|nccl|ptx|driver|device|dlopen|\.so\b|\.dll\b|symbol|library"
)
# Words about SIGKILL that need not be about this program.
_LOOSE_KILLS = ("killed-in-a-sentence", "killed-in-small-letters", "killed-over-a-bar")
# Harmless lines about these say something about the run; others are written by every start.
_WHILE_RUNNING = ("cpu_alloc_failure", "fork_or_thread_deadlock", "gpu_oom")
_SIGNALS_OF_A_CRASH = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP")


@dataclass(frozen=True)
class TextVerdict:
    """The cause that a text shows.

    Attributes:
        cause: The label of the cause.
        confidence: How sure.
        sign: The line that explains the others; None if there is none.
        line: The line to quote; None if the end is known from another source.
        after: A later line that says how the program ended; a consequence.
        survived: Alarming lines that were not the end.
        note: What the line says, if there is no sign.
    """

    cause: str
    confidence: Confidence
    sign: Sign | None = None
    line: LogLine | None = None
    after: LogLine | None = None
    survived: tuple[Sign, ...] = ()
    note: str = ""

    @property
    def says(self) -> str:
        """What the sign says, in a few words; empty without one."""
        if self.cause == "no_crash":
            return "the program continued"
        return self.sign.row.says if self.sign is not None else self.note


def of_pasted(story: Story, kernel_log: Story, status: ExitStatus | None) -> TextVerdict:
    """The cause that a pasted log shows.

    Args:
        kernel_log: The lines of the operating system's log. A memory daemon or a batch system may report its kill there.
    """
    sign = story.settled or kernel_log.reported or story.best or _in_system_log(story, kernel_log)
    if status is not None and status.cause is not None and _only_ended(sign):
        line = sign or story.ended
        return TextVerdict(status.cause, Confidence.LIKELY, None, line.line if line else None)
    if sign is not None:
        after = story.ended.line if story.ended is not None and story.ended is not sign else None
        deciding = (
            sign.line
            if sign in story.signs or sign in story.survived
            else sign.line._replace(number=0)
        )
        return TextVerdict(*_weighed(story, sign), sign, deciding, after)
    if story.ended_badly or (status is not None and (status.code or status.signal)):
        return _of_failure(story, status)
    if (last := story.stderr_end) is not None:
        return TextVerdict(last.cause, Confidence.POSSIBLE, last, last.line)
    if is_cut_in_traceback(story.lines):
        return _of_failure(story, status)
    if story.ends_in_trouble or says_that_it_hung(story.lines[story.last_progress + 1 :]):
        return TextVerdict("unknown", Confidence.POSSIBLE)
    if story.said is not None and not story.ended_well:
        return TextVerdict(story.said.cause, Confidence.POSSIBLE, story.said, story.said.line)
    went_on = story.last_progress >= 0
    progress_line = story.lines[story.last_progress] if went_on else None
    if (sure := _survival(story)) is not None:
        return TextVerdict("no_crash", sure, None, progress_line, survived=tuple(story.alarming))
    return TextVerdict(
        "unknown", Confidence.POSSIBLE, None, progress_line, note="the last step in this text"
    )


def _survival(story: Story) -> Confidence | None:
    """How sure it is that nothing in a text without a failure ended the program; None if the text does not show it.

    It is shown by an orderly end, or by steps after an alarming line. Lines that are always harmless need no steps. Steps
    alone show nothing: a log of a program that was killed silently looks the same.
    """
    real = [sign for sign in story.survived if sign.role is not Role.NOISE]
    running = [sign for sign in story.survived if sign.cause in _WHILE_RUNNING]
    if real or (running and not story.stops_midway) or (story.survived and story.ended_well):
        # Another program may have gone on after a line that says that this one ended.
        ends = (Role.SETTLES, Role.FATAL, Role.ENDING, Role.ENDED)
        ended = any(sign.role in ends or sign.row.aborts for sign in story.survived)
        handled = any(sign.role is not Role.FAILED for sign in story.survived)
        later = any(sign.role is not Role.NOISE for sign in story.signs)
        certain = handled and not ended and not later and not story.stops_midway
        certain = certain and not story.may_be_of_another_process
        return Confidence.CERTAIN if certain and not story.retold else Confidence.LIKELY
    if story.ended_well:
        return Confidence.LIKELY
    if story.survived and _goes_on(story):
        return Confidence.POSSIBLE
    # A large request for memory is harmless, but it may be the last thing that a program writes.
    short = any(sign.row.id == "tf-ten-percent" for sign in story.signs)
    return Confidence.POSSIBLE if story.signs and story.alarming and not short else None


def _goes_on(story: Story) -> bool:
    """True if a result follows the last alarming line, or a second epoch."""
    last = max(sign.index for sign in story.survived)
    after = story.lines[last + 1 : story.last_progress + 1]
    epochs = {number for line in after if (number := epoch_number(line)) is not None}
    return not story.stops_midway and (len(epochs) > 1 or any(map(is_result, after)))


def _in_system_log(story: Story, kernel_log: Story) -> Sign | None:
    """The sign in the operating system's log, if no text was given with it, or if its line names a Python process."""
    sign = kernel_log.best
    if sign is None or (story.lines and not _OF_PYTHON.search(sign.line.text)):
        return None
    return sign


def _only_ended(sign: Sign | None) -> bool:
    return sign is None or sign.role is Role.ENDING


def _of_failure(story: Story, status: ExitStatus | None) -> TextVerdict:
    """For a program that ended, without a line that shows why."""
    end = story.ended or story.first(Role.FAILED) or story.refuted
    line = end.line if end is not None else None
    hint = story.first(Role.HINTS)
    if hint is not None and _may_explain(hint, story, end):
        return TextVerdict(hint.cause, Confidence.POSSIBLE, hint, hint.line, line)
    if status is not None and status.by_itself and end is None:
        return TextVerdict("sys_exit", Confidence.POSSIBLE)
    return TextVerdict("unknown", Confidence.POSSIBLE, None, line)


def _may_explain(hint: Sign, story: Story, end: Sign | None) -> bool:
    """True if a warning can be the reason of the failure: an import, or anything that is not an exception about another thing."""
    if hint.cause == "abi_mismatch":
        about_numpy = end is not None and "umpy" in end.line.text
        return story.failed_import or about_numpy or (end is None and story.lists_numpy_stack)
    if (
        hint.cause == "cuda_library_missing"
        and end is not None
        and (end.role is Role.FAILED or "CalledProcessError" in end.line.text)
    ):
        return _ABOUT_GPU.search(end.line.text) is not None
    return True


def _weighed(story: Story, sign: Sign) -> tuple[str, Confidence]:
    cause, sure = sign.cause, Confidence.LIKELY
    verified = sign.row.check != "unverified"
    if sign.role in (Role.NAMES, Role.DEGRADES, Role.SETTLES) and verified:
        sure = Confidence.CERTAIN
    if cause == "sigkill_unattributed" and verified and sign.row.id not in _LOOSE_KILLS:
        sure = Confidence.CERTAIN
    if cause == "memory_daemon" and not _names_victim(story, sign):
        sure = Confidence.LIKELY
    if sure is Confidence.CERTAIN and sign.role is Role.NAMES and story.is_uncertain_end(sign):
        sure = Confidence.LIKELY
    if sign.row.id == "xla-cpu-out-of-memory" and is_on_gpu(story.lines):
        return "gpu_oom", Confidence.LIKELY
    if cause == "gpu_oom" and story.starved_device is not None:
        return "gpu_oom_other_process", Confidence.LIKELY
    if sign.row.id == "bus-error" and story.in_data_worker:
        return "bus_error_shm", Confidence.LIKELY
    if sign.row.id == "no-space" and story.writes_shared_memory(sign):
        return "bus_error_shm", Confidence.LIKELY
    return cause, sure


def _names_victim(story: Story, sign: Sign) -> bool:
    """True if the message of a memory daemon is about this program.

    Ray, Dask and Kubernetes report on what they manage. Daemons of the machine may kill any program.
    """
    details = dict(sign.details)
    if sign.row.speaker == "native":
        return True
    pid, name = details.get("pid"), details.get("name", "")
    if pid is not None and any(
        re.search(rf"\b{pid}\b", line.text) for line in story.lines if line is not sign.line
    ):
        return True
    return runs_python(name) and story.last_progress < 0 and len(story.signs) <= 1


def gave_up(seen: Observed) -> bool:
    """True if the kernel itself caused its end, as far as is known: no kill, no request, no orderly end."""
    return not seen.kernel_alive and (
        seen.exit_signal in _SIGNALS_OF_A_CRASH
        or (seen.exit_signal is None and seen.exit_code not in (None, 0))
        or (not seen.exit_is_known and seen.exit_signal is None and seen.end_reason is None)
    )


def of_recorded(seen: Observed) -> TextVerdict | None:
    """The cause that the stderr tail of a recording shows for this end; None if it shows none.

    The tail does not explain a kill or termination from outside, or an orderly end. A fatal line that is followed by
    ordinary log lines was survived, or came from another process such as a child. So did one older than the last cell.
    """
    if not gave_up(seen) or native_text_is_old(seen):
        return None
    story = seen.story
    # A fatal record may be pages long: a list of all flags, the native stack.
    begin = max(len(story.lines) - _LATE_LINES, 0)
    alive = max(
        (i for i, line in enumerate(story.lines) if line.severity in ("I", "W")), default=-1
    )
    late = [
        sign
        for sign in story.signs
        if (sign.index >= begin or (sign.line.severity == "F" and sign.index > alive))
        and (sign.row.speaker == "native" or sign.line.severity)
        and not record_is_old(sign.line.text, seen.died)
    ]
    fatal = next((s for s in late if _gives_up(s) and s.index > alive), None)
    if fatal is None:
        return None
    # The explanation of the fatal line is before it, in it, or in the line after it ("  what():  ...").
    for roles in ((Role.NAMES, Role.DEGRADES), (Role.SUGGESTS,)):
        first = next((s for s in late if s.role in roles and s.index <= fatal.index + 1), None)
        if first is not None:
            return TextVerdict(first.cause, Confidence.LIKELY, first, first.line, fatal.line)
    return TextVerdict(fatal.cause, Confidence.LIKELY, fatal, fatal.line)


def _gives_up(sign: Sign) -> bool:
    """True for a line after which the process that printed it always ends."""
    return sign.role is Role.FATAL or sign.row.aborts or sign.line.severity == "F"


def native_text_is_old(seen: Observed) -> bool:
    """True if the whole stderr tail was written before the last cell began, or long before the end; False if unknown."""
    kernel = dict_of(seen.kernel)
    written = number_of(kernel.get("stderr_time"))
    if written is None:
        return False
    cells = [event.time for event in seen.journal if isinstance(event, CellStart)]
    began = cells[-1] if cells else None
    if began is not None and written < began - _TICK_SECONDS:
        return True
    crashed = number_of(kernel.get("fault_time"))
    if seen.fault_title is not None and crashed is not None:
        return written < crashed - _FAULT_SECONDS
    return bool(seen.died) and written < seen.died - _LATE_SECONDS


def record_is_old(text: str, died: float) -> bool:
    """True if the time in a record is too far from the end, given in Unix seconds."""
    if not died:
        return False
    if found := _UNIX_TIME.search(text[:80]):
        return abs(died - float(found[1])) > _LATE_SECONDS
    if (found := _WALL_TIME.search(text[:80])) is None:
        return False
    try:
        ago = died - calendar.timegm(time.strptime(found[1], "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return False
    offset = (ago + _ZONE_SECONDS / 2) % _ZONE_SECONDS - _ZONE_SECONDS / 2
    return abs(ago) > _FARTHEST_SECONDS or abs(offset) > _LATE_SECONDS
