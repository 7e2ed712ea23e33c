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
from .free_memory import is_starved, roomy
from .log_lines import (
    TRACEBACK,
    Haystack,
    LogLine,
    all_without_guesses,
    is_cut_in_traceback,
)
from .progress import (
    DONE,
    PROGRESS,
    is_bare_bar,
    is_last_epoch,
    is_ordinary,
    is_preparation,
    is_unfinished_bar,
    shows_end,
    shows_progress,
    shows_trouble,
)
from .remarks import is_handled, is_of_another_run, is_retold
from .signs import Role, Sign, find_signs

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
# Epoch 0:   4%|#         | 120/3000 [00:41<16:20, 2.94it/s]    Epoch 0:   4%|##
_UNFINISHED = re.compile(r"[^%|]{0,160}\b\d{1,2}(?:\.\d{1,3})?%\|")
# Finished processing all songs
_FINISHED = re.compile(r"(?i)(?:finished|done|completed?)\b(?!.{0,40}\d)")
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]{0,120}\.)?[A-Z]\w{0,60}(?:Error|Exception)(?:: |:?$)")
# A bar is drawn again once or twice by each process that ends. Earlier lines than these are not compared.
_REDRAWN = 50


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
        return Haystack(all_without_guesses([line.text for line in self.lines]))

    @cached_property
    def last_progress(self) -> int:
        """Index of the last line that shows that the program continued; -1 for none."""
        places = (n for n in reversed(range(len(self.lines))) if shows_progress(self.lines[n]))
        nearest = enumerate(places)
        last = next((n for tried, n in nearest if tried >= _REDRAWN or not self._is_alarm(n)), -1)
        for earlier in itertools.islice(places, _REDRAWN):
            place = bar_place(self.lines[last].text)
            if place is None or place != bar_place(self.lines[earlier].text):
                break
            last = earlier  # drawn once more at the same place
        if last >= 0 and self._is_drawn_at_the_end(last):
            last = next((n for n in places if not self._is_drawn_at_the_end(n)), -1)
        return self._last_step(last) if last >= 0 and is_preparation(self.lines[last]) else last

    def _last_step(self, last: int) -> int:
        """The last step before a loading bar, if an error between them ended a program: another process loads."""
        step = next(
            (
                n
                for n in range(last - 1, -1, -1)
                if shows_progress(self.lines[n]) and not is_preparation(self.lines[n])
            ),
            -1,
        )
        between = find_signs(self.lines, self.haystack, step + 1, last)
        return step if any(self._ends_a_program(sign) for sign in between) else last

    def _ends_a_program(self, sign: Sign) -> bool:
        """True for an exception that was not handled, an abort and a reported end."""
        if sign.row.aborts or sign.role in (Role.FATAL, Role.ENDING):
            return True
        return self.is_raised(sign)

    def is_raised(self, sign: Sign) -> bool:
        """True for the line of an exception, if no words near it say that the program handled it."""
        if sign.row.printed or sign.role is Role.NOISE:
            return False
        near = self.lines[sign.index : sign.index + 2]
        return _EXCEPTION.match(sign.line.message) is not None and not any(map(is_handled, near))

    @property
    def may_be_of_another_process(self) -> bool:
        """True if an exception was raised before the last progress, or only a bar without numbers follows an error."""
        real = [sign for sign in self.survived if sign.role is not Role.NOISE]
        bar = self.last_progress >= 0 and is_bare_bar(self.lines[self.last_progress])
        return (bool(real) and bar) or any(self.is_raised(sign) for sign in real)

    def _is_drawn_at_the_end(self, place: int) -> bool:
        """True for the last line with progress, if it is written while the program ends.

        An exception draws an unfinished bar once more. A launcher reports that its program is finished, right after a message
        after which a program always ends. A program that is asked to end may save its state first.
        """
        text = self.lines[place].message
        is_bar = _UNFINISHED.match(text) is not None
        saves = PROGRESS.search(text) is None and DONE.search(text) is not None
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
        return any(s.role not in quiet for s in found) and not is_handled(self.lines[place])

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
                and not self._is_only_the_head(s)
                and not (s.row.id == "launcher-traceback" and self._runs_cells(s))
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
    def stderr_end(self) -> Sign | None:
        """The last line that is no output, if it reports a refused request for GPU memory or a GPU that the build does not know."""
        last = next(reversed(self.signs), None)
        if (
            last is None
            or last.role is not Role.HINTS
            or any(map(is_ordinary, self.lines[last.index + 1 :]))
        ):
            return None
        return last if last.cause in ("gpu_oom", "gpu_arch_unsupported") else None

    @cached_property
    def starved_device(self) -> LogLine | None:
        """The line that shows a GPU with almost no free memory when the program started to use it."""
        return next((line for line in self.lines if is_starved(line)), None)

    @cached_property
    def roomy_device(self) -> tuple[int, int] | None:
        """Free and total bytes of the GPU, if the last numbers about it show that much was free."""
        return roomy(self.lines)

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

    @cached_property
    def ended_well(self) -> bool:
        """True if the last line with progress is an orderly end, or the last epoch is finished."""
        if self.last_progress < 0 or self.stops_midway:
            return False
        if shows_end(self.lines[self.last_progress]):
            return True
        places = reversed(range(self.last_progress + 1))
        last = next((n for n in places if is_last_epoch(self.lines[n])), self.last_progress)
        return any(shows_end(line) for line in self.lines[last : self.last_progress])

    @cached_property
    def stops_midway(self) -> bool:
        """True if the last line is an unfinished bar."""
        last = len(self.lines) - 1
        return self.last_progress == last >= 0 and is_unfinished_bar(self.lines[last])

    @cached_property
    def retold(self) -> list[Sign]:
        """Errors that a person reports in sentences above the log: steps in the log do not show that they were survived."""
        return [sign for sign in self.survived if is_retold(sign.line.text)]

    @property
    def said(self) -> Sign | None:
        """The first error that a person reports of the run that the log shows."""
        about = (Role.NAMES, Role.DEGRADES, Role.SUGGESTS, Role.FATAL, Role.ENDING)
        found = (s for s in self.retold if s.role in about and not is_of_another_run(s.line.text))
        return next(found, None)

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
            shows_trouble(line) or line.message.startswith(TRACEBACK)
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
        """True if the last traceback leads through an import, or the message of an ImportError is on the next lines."""
        begin = max(
            (i for i, line in enumerate(self.lines) if "Traceback (most recent" in line.text),
            default=len(self.lines),
        )
        return any(_IMPORT.search(line.text) for line in self.lines[begin:]) or any(
            line.message == "ImportError:" for line in self.lines
        )

    @property
    def lists_numpy_stack(self) -> bool:
        """True if the text ends in the stack that NumPy lists after its message about a module; its head has no line end."""
        heads = [line.text for line in self.lines if line.message.startswith(TRACEBACK)]
        return (
            bool(heads) and f"{TRACEBACK}:  File " in heads[-1] and is_cut_in_traceback(self.lines)
        )

    def is_uncertain_end(self, sign: Sign) -> bool:
        """True if ordinary output follows a line, and nothing that says that the program ended or failed."""
        ends = (Role.SETTLES, Role.FATAL, Role.ENDING, Role.ENDED, Role.FAILED)
        if sign.row.aborts or any(s.index > sign.index and s.role in ends for s in self.signs):
            return False
        return any(is_ordinary(line) for line in self.lines[sign.index + 1 :])

    def _was_handled(self, sign: Sign) -> bool:
        """True if the line itself, or the next one, says that the program handled the error, and no end follows."""
        ends = (Role.SETTLES, Role.FATAL, Role.ENDING, Role.ENDED, Role.FAILED)
        if sign.row.aborts or any(s.index > sign.index and s.role in ends for s in self.signs):
            return False
        near = self.lines[sign.index : sign.index + 2]
        return any(map(is_handled, near))

    def _is_only_the_head(self, sign: Sign) -> bool:
        """True for the first line of a notebook's traceback, if its last line, with the message, is there too."""
        head = dict(sign.details).get("head")
        return head is not None and any(
            line.message.startswith(f"{head}:") for line in self.lines[sign.index + 1 :]
        )

    def _runs_cells(self, sign: Sign) -> bool:
        """True if the stack of a kernel leads through its main loop, so it was started; also for the one that NumPy lists."""
        return self.lists_numpy_stack or any(
            line.message == "app.start()" for line in self.lines[sign.index + 1 : sign.index + 9]
        )

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
        if end is None:  # a traceback whose exception was not copied
            after = range(sign.index + 1, len(self.lines))
            end = next((n for n in after if self.lines[n].message == f"{TRACEBACK}:"), None)
        return any(is_ordinary(line) for line in self.lines[sign.index + 1 : end])
