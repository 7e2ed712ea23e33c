"""What a bundle or a pasted log holds, with typed questions. Server facts win over what the kernel claimed; unknown is None.

Nothing in a bundle is trusted to have the right type: a notebook can write anything into its own recording.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any

from ..record.facts import AROUND_THE_KERNEL
from ..record.timeline import Point, column, timeline
from .exit_status import passed_on_signal
from .gpus import Gpu, gpus_of
from .group import Group, groups_of
from .log_lines import log_lines, native_lines
from .pasted import Pasted
from .python_stacks import CRASHED_AGAIN, FAULT_LINE, FAULT_SIGNALS, cell_frame, own_stacks
from .standstill import Standstill, standstill_of
from .story import Story
from .typed import dict_of, lines_of, number_of, text_of, whole_of


class Observed:
    """One bundle, or one pasted log, with typed questions.

    Args:
        bundle: What is known about a death; empty for a pasted log.
        pasted: The log. It knows no process, no counters and no samples: only texts.
    """

    def __init__(self, bundle: dict[str, Any], pasted: Pasted | None = None) -> None:
        self.bundle = bundle
        self.pasted = pasted
        self.identity = dict_of(bundle.get("identity"))
        self.server: dict[str, Any] | None = dict_of(bundle.get("server")) or None
        self.kernel: dict[str, Any] | None = dict_of(bundle.get("kernel")) or None
        self.header = dict_of((self.kernel or {}).get("header"))
        self.pid = int(number_of(self.identity.get("pid")) or 0)
        self.died = number_of(self.identity.get("died")) or 0.0
        self._series: dict[tuple[str, bool], list[tuple[float, float]]] = {}

    @property
    def who(self) -> str:
        """What died, for the beginning of a sentence."""
        return "The kernel" if self.pasted is None else "The program"

    # --- how it ended -------------------------------------------------------------------------------------------

    @cached_property
    def _exit(self) -> dict[str, Any]:
        return dict_of((self.server or {}).get("exit"))

    @property
    def exit_was_seen(self) -> bool:
        """True when the watcher itself read the exit status of the kernel."""
        return bool(self._exit) and self.exit_code_around is None

    @property
    def exit_code_around(self) -> int | None:
        """Exit code of a program that had started the kernel and waited for it; None where the kernel's own was seen."""
        if self._exit.get("how") != AROUND_THE_KERNEL:
            return None
        return whole_of(self._exit.get("code"))

    @property
    def never_answered(self) -> bool:
        """True for a kernel process that its server heard nothing from, and that left no recording."""
        return self.kernel is None and (self.server or {}).get("answered") is False

    @property
    def asked_to_end(self) -> bool:
        """True for a restart or shutdown that its user asked for: how the process ended then says nothing."""
        return bool((self.server or {}).get("shutting_down"))

    @property
    def exit_signal(self) -> str | None:
        """Name of the signal that ended it, from the exit status, else from faulthandler's or a signal's file."""
        if self.asked_to_end:
            return None
        if self.exit_code_around is not None:
            return passed_on_signal(self.exit_code_around) or self._claimed_signal
        if self._exit:
            return text_of(self._exit.get("signal"))
        return self._claimed_signal

    @property
    def first_signal(self) -> str | None:
        """The signal that began the end: not :attr:`exit_signal` where faulthandler itself crashed on the way.

        It walks the stacks of threads that run on meanwhile, and where one of them changes under it the process ends by
        SIGSEGV, whatever had come first.
        """
        if self.exit_signal == "SIGSEGV" and any(CRASHED_AGAIN in s for s in self.fault_lines[1:]):
            return FAULT_SIGNALS.get(self.fault_title or "", self.exit_signal)
        return self.exit_signal

    @property
    def exit_code(self) -> int | None:
        """Exit code, only when the watcher saw it; None for one that stands for a signal."""
        if self.asked_to_end or (self.exit_code_around is not None and self.exit_signal):
            return None
        return whole_of(self._exit.get("code"))

    @cached_property
    def hang(self) -> Standstill | None:
        """How the kernel had stood still until its end; None when it had not, or nobody saw it."""
        return standstill_of(self.bundle)

    @cached_property
    def journal(self) -> list[dict[str, Any]]:
        """The events of the kernel's journal, which may be forged: dictionaries, in order."""
        found = (self.kernel or {}).get("events")
        events = [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []
        if self.hang is not None and self.asked_to_end:
            # A restart begins with an interrupt, which ends the cell. What counts is how it hung.
            events = [e for e in events if (number_of(e.get("t")) or 0) <= self.hang.noticed]
        return events

    @cached_property
    def _claimed_signal(self) -> str | None:
        if self.fault_title in FAULT_SIGNALS:
            return FAULT_SIGNALS[self.fault_title]
        return next((name for name in self.signal_texts if name != "SIGQUIT"), None)

    @property
    def kernel_alive(self) -> bool:
        """True when a child died and the kernel goes on."""
        return bool((self.server or {}).get("kernel_alive"))

    @property
    def end_reason(self) -> str | None:
        """How an orderly end was asked for: ``quit``, ``shutdown_request``; None without an end mark."""
        return text_of(dict_of((self.kernel or {}).get("end")).get("reason"))

    @property
    def parent_gone(self) -> bool:
        """True when the process that started the kernel had ended too (known for unwatched kernels only)."""
        return bool(self.bundle.get("parent_gone"))

    @property
    def outlived_starter(self) -> bool:
        """True when the kernel noted the end of the process that had started it."""
        return self.header.get("starter_gone") is not None

    @property
    def only_silent(self) -> bool:
        """True when all that speaks for the death is that the recording does not change any more."""
        return self.server is None and self.bundle.get("judged_by") == "silence"

    def why_unavailable(self, source: str) -> str | None:
        """Why the watcher could not read a source, ``cgroup`` or ``NVML``; None when that was not noted."""
        return text_of(dict_of((self.server or {}).get("unavailable")).get(source))

    # --- texts ---------------------------------------------------------------------------------------------------

    @cached_property
    def fault_lines(self) -> list[str]:
        """faulthandler's text: from the file of ours, else from the native stderr (a faulthandler of the user's own)."""
        lines = lines_of((self.kernel or {}).get("fault_text"))
        if lines:
            return lines
        starts = [i for i, line in enumerate(self.stderr_lines) if FAULT_LINE.match(line)]
        return self.stderr_lines[starts[-1] :] if starts else []

    @property
    def fault_title(self) -> str | None:
        """What faulthandler calls it: ``Segmentation fault``; None without its text."""
        found = FAULT_LINE.match(self.fault_lines[0]) if self.fault_lines else None
        return found.group(1) if found else None

    @cached_property
    def signal_texts(self) -> dict[str, list[str]]:
        """Python stack per terminating signal that left one: ``{"SIGTERM": [...]}``."""
        texts = dict_of((self.kernel or {}).get("signal_texts"))
        return {str(name): lines for name, text in texts.items() if (lines := lines_of(text))}

    @cached_property
    def stderr_lines(self) -> list[str]:
        """The last native words, oldest first."""
        return lines_of((self.kernel or {}).get("stderr_tail"))

    @cached_property
    def story(self) -> Story:
        """What the text tells as a whole: the pasted log, else the last native words."""
        if self.pasted is not None:
            return Story(log_lines(self.pasted.text))
        return Story(native_lines(self.stderr_lines))

    @cached_property
    def _own_stacks(self) -> list[list[str]]:
        return own_stacks((self.fault_lines, *self.signal_texts.values()))

    @property
    def own_frames(self) -> list[str]:
        """Python lines of the thread that got the fatal signal, innermost first."""
        return list(itertools.chain.from_iterable(self._own_stacks))

    @property
    def last_python_frame(self) -> str | None:
        """``File "...", line N in name``, the innermost Python line at the fatal signal."""
        return next((frames[0].strip() for frames in self._own_stacks if frames), None)

    @property
    def last_cell_frame(self) -> str | None:
        """``line N of the cell, in name``: the innermost Python line of the notebook's own code at the fatal signal."""
        return cell_frame(self.own_frames)

    # --- numbers -------------------------------------------------------------------------------------------------

    def series(self, name: str, *, claimed: bool = True) -> list[tuple[float, float]]:
        """(Unix seconds, value) of a metric, oldest first: what a rule may judge by.

        Args:
            claimed: Whether the kernel's own samples count for a metric that the server did not see. What rests on them
                is never more than *likely*.
        """
        if (name, claimed) not in self._series:
            found = list(column(self.server or {}, name))
            if claimed and not found:
                found = list(column(dict_of((self.kernel or {}).get("samples")), name))
            self._series[name, claimed] = found
        return self._series[name, claimed]

    def timeline(self, name: str) -> list[Point]:
        """A metric as far back as anybody knows it, by time. Each point says who saw it; most are the kernel's own word."""
        return timeline(name, self.server or {}, self.kernel or {}, self.died or math.inf)

    def last(self, name: str) -> float | None:
        """The newest known value of a metric before the death; zeros of a process being torn down are skipped."""
        values = [value for _, value in self.series(name)]
        if name == "process.rss_bytes":
            values = [value for value in values if value > 0]
        return values[-1] if values else None

    def peak(self, *, claimed: bool = True) -> int | None:
        """Highest resident memory known, bytes. `claimed` as in :meth:`series`."""
        rss = [value for _, value in self.series("process.rss_bytes", claimed=claimed)]
        marks = [value for _, value in self.series("process.peak_bytes", claimed=claimed)]
        seen = number_of((self.server or {}).get("peak_bytes"))
        known = [*rss, *marks, *([seen] if seen is not None else [])]
        return int(max(known)) if known and max(known) > 0 else None

    @cached_property
    def groups(self) -> list[Group]:
        """The kernel's own cgroup first, then its ancestors, as counted before and after; empty when not read."""
        return groups_of(self._counters("before"), self._counters("after"))

    @property
    def own_group(self) -> Group | None:
        """The kernel's own cgroup."""
        return next((group for group in self.groups if group.own), None)

    def _counters(self, which: str) -> dict[str, Any]:
        return dict_of((self.server or self.bundle.get("counters") or {}).get(which))

    def host(self, name: str, which: str = "before") -> float | None:
        """A number of the whole machine: ``host_available_bytes`` and others of :class:`~..record.facts.Counters`."""
        return number_of(self._counters(which).get(name))

    @property
    def host_oom_kill_rise(self) -> int | None:
        """Rise of the machine-wide OOM kill counter, whoever was killed; None when not read both times."""
        old = self.host("host_oom_kill_count")
        new = self.host("host_oom_kill_count", "after")
        return None if old is None or new is None else max(0, int(new - old))

    # --- the machine --------------------------------------------------------------------------------------------

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The machine's GPUs, as the server saw them."""
        return gpus_of((self.server or {}).get("gpus"), self.died)
