"""A log as a whole: which of its signs explains the others.

The first error that explains the others is the cause. A later check, abort, crash or launcher's message is a consequence.
The program survived an error that is followed by progress. A line that only wraps a status is judged by that status,
because the rows of messages.toml match the status. Facts of the operating system or a batch system outrank all text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .bars import bar_place
from .log_lines import TRACEBACK, Haystack, LogLine, without_guesses
from .signs import Role, Sign, find_signs

# "totalMemory: 11.17GiB freeMemory: 163.62MiB", TensorFlow 1; others use a device that has less than this left.
_FREE = re.compile(
    r"totalMemory: (?P<total>[\d.]{1,12})(?P<total_unit>[KMG]i?B).{0,10}freeMemory: (?P<free>[\d.]{1,12})(?P<free_unit>[KMG]i?B)"
)
# "Created device /job:.../device:GPU:0 with 151 MB memory", of all releases
_CREATED = re.compile(
    r"Created (?:TensorFlow )?device .{0,200}device:GPU:\d{1,3} with (?P<size>\d{1,8}) MB memory"
)
# "Memory usage: 8019231744 bytes free, 8361738240 bytes total." after a CUDA library could not start
_USAGE = re.compile(r"Memory usage: (?P<free>\d{1,18}) bytes free, (?P<total>\d{1,18}) bytes total")
_DATA_WORKER = (
    "_worker_loop",
    "DataLoader worker",
    "multiprocessing/shared_memory.py",
    "multiprocessing/heap.py",
    "because /dev/shm has only",
)
# File "/usr/lib/python3.11/multiprocessing/heap.py", line 85, in __init__: the lines of the innermost frames
_SHARED_MEMORY_FRAME = re.compile(
    r"[/\\]multiprocessing[/\\](?:heap|shared_memory|synchronize)\.py\b"
)
_FRAME_LINES = 4
# import pandas      from .core import api
_IMPORT = re.compile(
    r"^\s*(?:import [\w.]+|from [\w.]+ import )|, in import_module$|<frozen importlib"
)
# Epoch 3/10      938/938 [=====>...] - 413s 436ms/step      64%|####   | 3.1it/s      val_loss: 0.39      step 340: ...
_PROGRESS = re.compile(
    r"(?:\bepoch:? ?\[?\d{1,7}\b"
    r"|\b\d{1,9}/(?:\d{1,9}|unknown) ?\[[=>.#-]"
    r"|\b\d{1,3}%\|"
    r"|\b\d+(?:\.\d+)?(?:s|ms|us)/(?:step|sample|epoch|it)\b|\b\d+(?:\.\d+)?(?:it/s|s/it)\b"
    r"|\b(?:loss|accuracy|acc|mae|mse|auc|f1|precision|recall|reward|return|score)\b\s?[:=]\s?\[?-?\d"
    r"|\b(?:global )?step:? ?\d{1,12}\b"
    r"|\b(?:finished with exit code|exited with (?:code|status)|exit code:|COMPLETED \(exit code)\s{1,8}0(?![\dx])\b|\bCOMPLETED\s{1,20}0:0\b)",
    re.IGNORECASE,
)
# A container's state says when it ended: `Finished:   Mon, 02 Feb ...`, "FinishedAt": "2026-02-03T...". That is no progress.
_DONE = re.compile(
    r"\b(?:sav(?:ed|ing) (?:the |trained |best |final )*(?:model|checkpoint|weights|predictions|results?|file|output)"
    r"|(?:models?|checkpoint|weights|predictions|results?|files?|output|report|table) (?:(?:is|are|was|were) )?(?:saved|written|stored)\b"
    r"|training (?:complete|completed|finished|done)|completed successfully|successfully completed|done[.!]?$"
    r"|finished(?!(?:At)?[\"']?:\s{1,20}[\"']?(?:[A-Z][a-z]{2}, \d|\d{4}-\d\d-\d\d))"
    r"|elapsed|tests? passed|\d{1,6} passed\b|predict(?:ion|ed)s?\b\s?[:=])",
    re.IGNORECASE,
)
# The rest of a warning that a library prints over several lines: advice in whole sentences, a list of folders. It is no output
# of the program.   If you are a user of the module, the easiest solution ...      ./cuda_sdk_lib      downgrade to 'numpy<2' or ... .
_REST_OF_A_WARNING = re.compile(
    r"^\s*(?:(?:If you|You (?:can|may|might|should|could)|Please|Consider|To (?:disable|enable|avoid|fix|turn|silence|support)|We (?:expect|recommend)|Some modules?\b"
    r"|For (?:more|debugging|most)|This (?:may|can|might|could|will|message|warning)|Note:?|See (?:also )?(?:https?:|the|more))\b.{10}"
    r"|(?:Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock): {1,30}\d+$|[a-z][^=:|]{0,200} [^=:|]{10,200}\.$|.{0,80}\bfollowing\b.{0,60}:$|(?:\.{0,2}/|[A-Z]:\\)\S*$)"
)
# What people write around a log.
_OF_A_PERSON = re.compile(
    r"\b(?:thanks|thank you|any ideas?|please|help|hi|hello|hallo|regards|cheers|anyone|somebody|i|my)\b|```",
    re.IGNORECASE,
)
# "Canceled future for execute_request message before replies were done"
_NOT_DONE = re.compile(
    r"\b(?:before|until|unless|not|never|nothing|cancell?ed|disposing|without|instead of)\b",
    re.IGNORECASE,
)
# Lines of a traceback, a shell prompt, remarks about a failure: none of them shows that the program continued.
_NOT_ORDINARY = re.compile(
    r"(?:Traceback|^\s|^\S{0,80}(?:Error|Exception|Warning|Interrupt|Exit)\b"
    r"|\b(?:errors?|failed|failure|fatal|abort|aborted|killed|died|dead|crash|crashed|restart|restarting|kernel|core dumped|"
    r"signal|exit code|exited|cannot|could not|unable|segmentation|terminated|warning|exception)\b"
    r"|^[@#*^~=_+|-]|[$%>#] )",
    re.IGNORECASE,
)


# 5/10 [====>....] - loss: 0.2Segmentation fault (core dumped): a progress bar has no line end, so the message follows it.
_END_TEXT = re.compile(
    r"Fatal Python error: |Segmentation fault|Bus error|Illegal instruction|Aborted\b|Killed\b|terminate called |OMP: Error #"
    r"|Traceback \(most recent call last\)|[Kk]ernel\b.{0,60}\b(?:died|dead|crashed|[Rr]estarting)|[Dd]ead ?[Kk]ernel|double free or corruption|(?:free|malloc|realloc|munmap_chunk)\(\): |slurmstepd: error"
)
# "kernel crashed in epoch 3": a step or an epoch in a sentence about the end. A bar or a list of metrics has no such word.
_END_WORD = re.compile(
    r"\b(?:crash(?:ed|es|ing)?|died|dies|dead|killed|aborted|terminated|seg-?faults?|segfaulted|hangs|hung|froze|frozen|stopped responding)\b",
    re.IGNORECASE,
)
# "CUDA out of memory. Tried to allocate 9.00 GiB, skipping this length": the program caught the error.
_HANDLED = re.compile(
    r"\b(?:skipp(?:ing|ed)|(?:will retry|retrying|retried)|caught|handled|halv(?:ing|ed)|falling back|fell back|(?<!Exception )ignor(?:ing|ed)(?! \(for causing)|continuing"
    r"|(?:reduc|lower|decreas|shrink)ing|trying (?:again|with|a smaller|half)|trying \d|next (?:trial|size|batch|config\w*))\b",
    re.IGNORECASE,
)
# Epoch 0:   4%|#         | 120/3000 [00:41<16:20, 2.94it/s]    Epoch 0:   4%|##
_UNFINISHED = re.compile(r"[^%|]{0,160}\b\d{1,2}(?:\.\d{1,3})?%\|")
# Finished processing all songs
_FINISHED = re.compile(r"(?i)(?:finished|done|completed?)\b(?!.{0,40}\d)")
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]{0,120}\.)?[A-Z]\w{0,60}(?:Error|Exception)\b: ")
# A bar is drawn again once or twice by each process that ends. Earlier lines than these are not compared.
_REDRAWN = 50
_STARVED_FRACTION = 0.1
_ROOMY_FRACTION = 0.5
_STARVED_MIB = 512
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}


@dataclass(frozen=True)
class Story:
    """One log.

    Args:
        lines: All lines, oldest first.
    """

    lines: Sequence[LogLine]

    @cached_property
    def haystack(self) -> Haystack:
        """The lines as one text."""
        return Haystack([without_guesses(line.text) for line in self.lines])

    @cached_property
    def last_progress(self) -> int:
        """Index of the last line that shows that the program continued; -1 for none."""
        places = (n for n in reversed(range(len(self.lines))) if _shows_progress(self.lines[n]))
        nearest = enumerate(places)
        last = next((n for tried, n in nearest if tried >= _REDRAWN or not self._is_alarm(n)), -1)
        for earlier in itertools.islice(places, _REDRAWN):
            place = bar_place(self.lines[last].text)
            if place is None or place != bar_place(self.lines[earlier].text):
                break
            last = earlier  # drawn once more at the same place
        if last >= 0 and self._is_drawn_at_the_end(last):
            return next((n for n in places if not self._is_drawn_at_the_end(n)), -1)
        return last

    def _is_drawn_at_the_end(self, place: int) -> bool:
        """True for the last line with progress, if it is written while the program ends.

        An exception draws an unfinished bar once more. A launcher reports that its program is finished, right after a message
        after which a program always ends. A program that is asked to end may save its state first.
        """
        text = self.lines[place].message
        is_bar = _UNFINISHED.match(text) is not None
        saves = _PROGRESS.search(text) is None and _DONE.search(text) is not None
        if place == 0 or not (is_bar or saves or _FINISHED.match(text)):
            return False
        before = find_signs(self.lines, self.haystack, place - 1, place)
        return any(
            (s.row.aborts and (is_bar or _FINISHED.match(text) is not None))
            or (is_bar and _EXCEPTION.match(s.line.message) is not None)
            or (saves and s.row.id == "asked-to-stop")
            for s in before
        )

    def _is_alarm(self, place: int) -> bool:
        """True if a message is on the line itself: it follows a progress bar, which has no line end."""
        quiet = (Role.HINTS, Role.NOISE, Role.FAILED)
        found = find_signs(self.lines, self.haystack, place, place + 1)
        return (
            any(s.role not in quiet for s in found)
            and _HANDLED.search(self.lines[place].text) is None
        )

    @cached_property
    def signs(self) -> list[Sign]:
        """Signs after the last progress, oldest first."""
        return find_signs(self.lines, self.haystack, self.last_progress + 1, len(self.lines))

    @cached_property
    def survived(self) -> list[Sign]:
        """Signs that are followed by progress, oldest first: alarming, but not the end."""
        return find_signs(self.lines, self.haystack, 0, self.last_progress + 1)

    def first(self, *roles: Role) -> Sign | None:
        """The first sign of one of these roles after the last progress."""
        return next((sign for sign in self.signs if sign.role in roles), None)

    @cached_property
    def settled(self) -> Sign | None:
        """What a batch system or container runtime says about the end; progress after it does not matter.

        The last such line, or one before it that says the same with numbers.
        """
        everything = [*self.survived, *self.signs]
        settles = [sign for sign in reversed(everything) if sign.role is Role.SETTLES]
        same = (sign for sign in settles if sign.cause == settles[0].cause and sign.details)
        return next(same, settles[0] if settles else None)

    @cached_property
    def reported(self) -> Sign | None:
        """Like :attr:`settled`, for a log of the operating system: it shows no progress."""
        found = find_signs(self.lines, self.haystack, 0, len(self.lines), Role.SETTLES)
        return next((sign for sign in reversed(found) if sign.role is Role.SETTLES), None)

    @cached_property
    def ended(self) -> Sign | None:
        """The first line after the last progress that reports an end."""
        return self.first(Role.ENDING, Role.ENDED)

    @cached_property
    def named(self) -> Sign | None:
        """The first line that names a mechanism; one that explains all others, wherever it is.

        A problem with the GPU is skipped if the program continued without it, and an error that the program handled.
        """
        named = [
            s
            for s in self.signs
            if (s.role is Role.NAMES and not self._was_handled(s))
            or (s.role is Role.DEGRADES and not self._went_on(s))
        ]
        return next((s for s in named if s.row.root), None) or next(iter(named), None)

    @cached_property
    def suggested(self) -> Sign | None:
        """The first line that usually indicates a cause."""
        return next(
            (
                s
                for s in self.signs
                if s.role is Role.SUGGESTS
                and not self._went_on(s)
                and not self._was_handled(s)
                and not (s.cause == "gpu_oom" and self.refuted)
            ),
            None,
        )

    @cached_property
    def best(self) -> Sign | None:
        """The sign that explains the others; None if no line names or suggests a cause, or shows how the program ended."""
        return (
            self.settled
            or self.named
            or self.suggested
            or self.first(Role.FATAL)
            or self._killed_at_a_limit
            or self.first(Role.ENDING)
        )

    @property
    def _killed_at_a_limit(self) -> Sign | None:
        """A remark about a reached memory limit, if the program was then killed without another reason."""
        ending = self.first(Role.ENDING)
        if ending is None or ending.cause != "sigkill_unattributed":
            return None
        hints = (s for s in self.signs if s.role is Role.HINTS and s.cause == "cgroup_oom")
        return next(hints, None)

    @property
    def last_words(self) -> Sign | None:
        """The last line, if it reports a refused request for GPU memory and no output follows."""
        last = next(reversed(self.signs), None)
        if last is None or last.role is not Role.HINTS or last.cause != "gpu_oom":
            return None
        return last if last.index + 1 == len(self.lines) else None

    @cached_property
    def starved_device(self) -> LogLine | None:
        """The line that shows a GPU with almost no free memory when the program started to use it."""
        return next((line for line in self.lines if _is_starved(line)), None)

    @cached_property
    def roomy_device(self) -> tuple[int, int] | None:
        """Free and total bytes of the GPU, if the last numbers about it show that much was free."""
        found = [hit for line in self.lines if (hit := _USAGE.search(line.text))]
        free, total = (int(found[-1]["free"]), int(found[-1]["total"])) if found else (0, 0)
        return (free, total) if 0 < _ROOMY_FRACTION * total <= free else None

    @cached_property
    def refuted(self) -> Sign | None:
        """The first line that usually means a lack of GPU memory, if the log shows that much of it was free."""
        usual = (s for s in self.signs if s.role is Role.SUGGESTS and s.cause == "gpu_oom")
        return next(usual, None) if self.roomy_device is not None else None

    @cached_property
    def alarming(self) -> list[Sign]:
        """Signs that look like a cause but were survived or harmless, oldest first."""
        quiet = (Role.ENDED, Role.FAILED)
        return [sign for sign in (*self.survived, *self.signs) if sign.role not in quiet]

    @property
    def ended_badly(self) -> bool:
        """True if a line after the last progress reports an end or a failure."""
        return bool(self.best or self.ended or self.refuted or self.first(Role.FAILED))

    @property
    def ends_in_trouble(self) -> bool:
        """True if an error without a known meaning, or the beginning of a traceback, follows the last progress."""
        known = {sign.index for sign in self.signs}
        after = enumerate(self.lines[self.last_progress + 1 :], self.last_progress + 1)
        return self.last_progress >= 0 and any(
            line.severity in ("E", "F") or line.message.startswith(TRACEBACK)
            for n, line in after
            if n not in known
        )

    @cached_property
    def in_data_worker(self) -> bool:
        """True if a data-loader worker is named, or its loop or Python's shared memory is in a stack: they write to shared memory."""
        return any(name in line.text for line in self.lines for name in _DATA_WORKER)

    def writes_shared_memory(self, sign: Sign) -> bool:
        """True if the traceback above a line ends in the part of Python that keeps arrays in shared memory."""
        above = self.lines[max(sign.index - _FRAME_LINES, 0) : sign.index]
        return any(_SHARED_MEMORY_FRAME.search(line.text) for line in above)

    @cached_property
    def failed_import(self) -> bool:
        """True if the last traceback leads through an import."""
        begin = max(
            (i for i, line in enumerate(self.lines) if "Traceback (most recent" in line.text),
            default=len(self.lines),
        )
        return any(_IMPORT.search(line.text) for line in self.lines[begin:])

    def is_uncertain_end(self, sign: Sign) -> bool:
        """True if ordinary output follows a line, and nothing that says that the program ended or failed."""
        ends = (Role.SETTLES, Role.FATAL, Role.ENDING, Role.ENDED, Role.FAILED)
        if sign.row.aborts or any(s.index > sign.index and s.role in ends for s in self.signs):
            return False
        return any(_is_ordinary(line) for line in self.lines[sign.index + 1 :])

    def _was_handled(self, sign: Sign) -> bool:
        """True if the line itself, or the next one, says that the program handled the error, and no end follows."""
        ends = (Role.SETTLES, Role.FATAL, Role.ENDING, Role.ENDED, Role.FAILED)
        if sign.row.aborts or any(s.index > sign.index and s.role in ends for s in self.signs):
            return False
        near = self.lines[sign.index : sign.index + 2]
        return any(_HANDLED.search(line.text[:1000]) for line in near)

    def _went_on(self, sign: Sign) -> bool:
        """True if a warning, or a record at error level or below, is followed by ordinary output and no failure.

        After an exception that is only printed, output counts up to the next failure.
        """
        survivable = sign.line.severity in ("I", "W", "E") or "Warning: " in sign.line.text
        if not survivable and not sign.row.printed:
            return False
        failures = (Role.SETTLES, Role.NAMES, Role.FATAL, Role.ENDING, Role.ENDED, Role.FAILED)
        end = next(
            (s.index for s in self.signs if s.index > sign.index and s.role in failures), None
        )
        if end is not None and not sign.row.printed:
            return False
        return any(_is_ordinary(line) for line in self.lines[sign.index + 1 : end])


def _is_starved(line: LogLine) -> bool:
    if "Memory" not in line.text and "memory" not in line.text:
        return False
    if found := _FREE.search(line.text):
        total, free = (
            float(found[name]) * _MIB[found[f"{name}_unit"][0]] for name in ("total", "free")
        )
        return total > 0 and free < _STARVED_FRACTION * total
    if found := _CREATED.search(line.text):
        return int(found["size"]) < _STARVED_MIB
    return False


def _shows_progress(line: LogLine) -> bool:
    """True for a line with a step, an epoch, a metric or a saved result, unless a message about the end follows in it."""
    text = line.message[:300]
    if line.severity or text.startswith(("File ", "Traceback")):
        return False
    progress = _PROGRESS.search(text)
    done = None if progress else _DONE.search(text)
    if not (progress or done) or _END_TEXT.search(line.text):  # in the order of their cost
        return False
    if done is None:
        return _END_WORD.search(text) is None
    return _NOT_ORDINARY.search(text) is None and _NOT_DONE.search(text, 0, done.start()) is None


def _is_ordinary(line: LogLine) -> bool:
    """True for any normal output of the program: weaker than :func:`_shows_progress`, but enough to refute a warning."""
    text = line.text[:300]
    if line.severity or len(line.message) <= 3 or line.message.endswith("?"):
        return False
    if _REST_OF_A_WARNING.match(text) is not None:
        return False
    return _NOT_ORDINARY.search(text) is None and _OF_A_PERSON.search(text) is None
