"""Typed access to a bundle or a pasted log. Facts of the server take precedence over claims of the kernel; unknown is None.

No value in a bundle is trusted to have the right type, because a notebook can write anything into its own recording.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any

from ..decode import decode, dict_of, lines_of, list_of, number_of, text_of, whole_of
from ..record.events import Event, events_of
from ..record.facts import AROUND_THE_KERNEL, Cull
from ..record.timeline import Point, column, timeline
from .exit_status import passed_on_signal
from .gpus import Gpu, gpus_of
from .group import Group, groups_of
from .log_lines import log_lines, native_lines
from .pasted import Pasted
from .python_stacks import (
    CRASHED_AGAIN,
    FAULT_LINE,
    FAULT_SIGNALS,
    cell_frame,
    own_stacks,
    package_of,
    without_fault_text,
    without_import,
)
from .readings import story_of
from .seen_hang import SeenHang, hang_of
from .story import Story


class Observed:
    """One bundle, or one pasted log, with typed access.

    Args:
        bundle: The recorded data about a death; empty for a pasted log.
        pasted: The log. It has only text: no process, no counters and no samples.
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
    def _seen_exit(self) -> dict[str, Any]:
        return dict_of((self.server or {}).get("exit"))

    @cached_property
    def _exit(self) -> dict[str, Any]:
        # The status that a helper process recorded counts only where no server watched.
        return self._seen_exit if self.server else dict_of((self.kernel or {}).get("exit"))

    @property
    def exit_was_seen(self) -> bool:
        """True when the watcher itself read the exit status of the kernel."""
        return bool(self._seen_exit) and self.exit_code_around is None

    @property
    def exit_is_known(self) -> bool:
        """True if the exit status of the kernel is known, also if only the helper process of its recording read it."""
        return bool(self._exit) and self.exit_code_around is None

    @property
    def exit_code_around(self) -> int | None:
        """Exit code of the program that started the kernel and waited for it; None if the kernel's exit code was read."""
        if self._seen_exit.get("how") != AROUND_THE_KERNEL:
            return None
        return whole_of(self._seen_exit.get("code"))

    @property
    def never_answered(self) -> bool:
        """True for a kernel process that never answered its server and left no recording."""
        return self.kernel is None and (self.server or {}).get("answered") is False

    @property
    def asked_to_end(self) -> bool:
        """True if the user requested a restart or shutdown. The exit status is then not evidence."""
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
        """The signal that started the crash. It differs from :attr:`exit_signal` if faulthandler itself crashed.

        faulthandler walks the stacks of threads that are still running. If a stack changes at that moment, the process
        ends with SIGSEGV, whatever the first signal was.
        """
        if self.exit_signal == "SIGSEGV" and any(CRASHED_AGAIN in s for s in self.fault_lines[1:]):
            return FAULT_SIGNALS.get(self.fault_title or "", self.exit_signal)
        return self.exit_signal

    @property
    def exit_code(self) -> int | None:
        """Exit code, only when the watcher or a helper process read it; None for a code that means a signal."""
        if self.asked_to_end or (self.exit_code_around is not None and self.exit_signal):
            return None
        return whole_of(self._exit.get("code"))

    @cached_property
    def hang(self) -> SeenHang | None:
        """The hang in which the kernel was when it ended; None when there was none, or it was not observed."""
        return hang_of(self.bundle)

    @cached_property
    def cull(self) -> Cull | None:
        """The check of the server's culler that shut the kernel down; None when something else ended it."""
        found = decode(Cull, (self.server or {}).get("cull"))
        numbers = () if found is None else (found.time, found.idle_seconds, found.timeout_seconds)
        return found if numbers and min(numbers) >= 0 else None

    @cached_property
    def journal(self) -> list[Event]:
        """The events of the kernel's journal in order. They may be forged."""
        events = events_of(list_of((self.kernel or {}).get("events")))
        # A restart or shutdown begins with an interrupt, which ends the cell. Only what was before matters.
        until = self.hang.noticed if self.hang else self.cull.time if self.cull else None
        if until is not None and self.asked_to_end:
            events = [e for e in events if (e.time or 0) <= until]
        return events

    @cached_property
    def _claimed_signal(self) -> str | None:
        if self.fault_title in FAULT_SIGNALS:
            return FAULT_SIGNALS[self.fault_title]
        return next((name for name in self.signal_texts if name != "SIGQUIT"), None)

    @property
    def kernel_alive(self) -> bool:
        """True if a child died and the kernel is still running."""
        return bool((self.server or {}).get("kernel_alive"))

    @property
    def end_reason(self) -> str | None:
        """How an orderly end was requested: ``quit``, ``shutdown_request``; None without an end mark."""
        return text_of(dict_of((self.kernel or {}).get("end")).get("reason"))

    @property
    def parent_gone(self) -> bool:
        """True if the process that started the kernel had ended too (known only for unwatched kernels)."""
        return bool(self.bundle.get("parent_gone"))

    @property
    def outlived_starter(self) -> bool:
        """True if the kernel recorded the end of the process that started it."""
        return self.header.get("starter_gone") is not None

    @property
    def only_silent(self) -> bool:
        """True if the only evidence of the death is that the recording no longer changes."""
        return self.server is None and self.bundle.get("judged_by") == "silence"

    def why_unavailable(self, source: str) -> str | None:
        """Why the watcher could not read a source, ``cgroup`` or ``NVML``; None when that was not recorded."""
        return text_of(dict_of((self.server or {}).get("unavailable")).get(source))

    # --- texts ---------------------------------------------------------------------------------------------------

    @cached_property
    def fault_lines(self) -> list[str]:
        """faulthandler's text: from tfguard's file, else from the stderr tail (if the user enabled faulthandler)."""
        if self._own_fault_lines:
            return self._own_fault_lines
        starts = [i for i, line in enumerate(self._stderr_tail) if FAULT_LINE.match(line)]
        return self._stderr_tail[starts[-1] :] if starts else []

    @cached_property
    def _own_fault_lines(self) -> list[str]:
        return lines_of((self.kernel or {}).get("fault_text"))

    @cached_property
    def _stderr_tail(self) -> list[str]:
        return lines_of((self.kernel or {}).get("stderr_tail"))

    @property
    def fault_title(self) -> str | None:
        """The error name in faulthandler's text: ``Segmentation fault``; None without this text."""
        found = FAULT_LINE.match(self.fault_lines[0]) if self.fault_lines else None
        return found.group(1) if found else None

    @cached_property
    def signal_texts(self) -> dict[str, list[str]]:
        """Python stack per terminating signal that left one: ``{"SIGTERM": [...]}``."""
        texts = dict_of((self.kernel or {}).get("signal_texts"))
        return {str(name): lines for name, text in texts.items() if (lines := lines_of(text))}

    @cached_property
    def stderr_lines(self) -> list[str]:
        """The lines of the stderr tail, oldest first, without those in `fault_lines`."""
        return self._stderr_tail if self._own_fault_lines else without_fault_text(self._stderr_tail)

    @cached_property
    def story(self) -> Story:
        """All of the text, interpreted: the pasted log, else the stderr tail."""
        if self.pasted is not None:
            return story_of(self.pasted.text)
        return Story(native_lines(self.stderr_lines))

    @cached_property
    def kernel_log(self) -> Story:
        """The operating system's log that came with a pasted log; empty for a recording."""
        return Story(log_lines(self.pasted.kernel_log) if self.pasted is not None else [])

    @cached_property
    def _own_stacks(self) -> list[list[str]]:
        return own_stacks((self.fault_lines, *self.signal_texts.values()))

    @property
    def own_frames(self) -> list[str]:
        """Python lines of the thread that got the fatal signal, innermost first."""
        return list(itertools.chain.from_iterable(self._own_stacks))

    @property
    def last_python_frame(self) -> str | None:
        """``File "...", line N in name``, the innermost Python line at the fatal signal; for an import, the line that imports."""
        outside = (without_import(frames) for frames in self._own_stacks if frames)
        return next((frames[0].strip() for frames in outside if frames), None)

    @property
    def importing_package(self) -> str | None:
        """Name of the installed package that was being imported at the fatal signal; None for another crash."""
        frames = self.own_frames
        return package_of(frames) if frames and without_import(frames) != frames else None

    @property
    def last_cell_frame(self) -> str | None:
        """``line N of the cell, in name``: the innermost Python line of notebook code at the fatal signal."""
        return cell_frame(self.own_frames)

    # --- numbers -------------------------------------------------------------------------------------------------

    def series(self, name: str, *, claimed: bool = True) -> list[tuple[float, float]]:
        """(Unix seconds, value) of a metric, oldest first, for use in rules.

        Args:
            claimed: Whether samples of the kernel count for a metric that the server has no samples of. Findings based on
                them are never more than *likely*.
        """
        if (name, claimed) not in self._series:
            found = list(column(self.server or {}, name))
            if claimed and not found:
                found = list(column(dict_of((self.kernel or {}).get("samples")), name))
            self._series[name, claimed] = found
        return self._series[name, claimed]

    def timeline(self, name: str) -> list[Point]:
        """All known points of a metric, by time. Each point names its source; most are self-reported by the kernel."""
        return timeline(name, self.server or {}, self.kernel or {}, self.died or math.inf)

    def last(self, name: str) -> float | None:
        """The newest known value of a metric before the death; zeros from the teardown of the process are skipped."""
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
        """The kernel's cgroup first, then its ancestors, with counters before and after; empty when not read."""
        return groups_of(self._counters("before"), self._counters("after"))

    @property
    def own_group(self) -> Group | None:
        """The kernel's cgroup."""
        return next((group for group in self.groups if group.own), None)

    def _counters(self, which: str) -> dict[str, Any]:
        return dict_of((self.server or dict_of(self.bundle.get("counters"))).get(which))

    def host(self, name: str, which: str = "before") -> float | None:
        """A number of the whole machine: ``host_available_bytes`` and others of :class:`~..record.facts.Counters`."""
        return number_of(self._counters(which).get(name))

    @property
    def host_oom_kill_rise(self) -> int | None:
        """Rise of the machine-wide OOM kill counter, for any victim; None unless read both times."""
        old = self.host("host_oom_kill_count")
        new = self.host("host_oom_kill_count", "after")
        return None if old is None or new is None else max(0, int(new - old))

    # --- the machine --------------------------------------------------------------------------------------------

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The machine's GPUs, as the server recorded them."""
        return gpus_of((self.server or {}).get("gpus"), self.died)
