"""The operating system's log near a death, for rules: out-of-memory kills, and failures of the machine."""

from __future__ import annotations

import re
from functools import cached_property

from ..decode import dict_of, list_of, number_of, text_of
from ..units import human_seconds
from .observed import Observed
from .os_log import (
    OTHER_NAMES,
    OomKill,
    OsFault,
    Xid,
    asked_in_vain,
    is_of_system,
    oom_kills,
    os_faults,
    rejoined,
    runs_python,
    xids,
)

# pid 4711      process 4711      line 14: 4711 Killed      I0000 00:00:1700000000.123456    4711 parse_flags.cc:224]
_PROCESS = (
    r"(?i:\b(?:pid|process)\b\W{{0,4}}0*{0}\b)|\b{0} Killed\b|^[IWEF]\d{{4}} [\d:.]{{5,30}} +{0} "
)
# /slurm/uid_1000/job_120045/step_0      /docker/4c01db0b339c...: often cut to 12 digits
_JOB = re.compile(r"/job_(\d{1,12})\b")
_CONTAINER = re.compile(r"[0-9a-f]{64}")
# Job 120045      StepId=120045.batch      job120045
_NAMES_JOB = r"(?i:\b(?:job|step)[a-z _]{{0,8}}\W{{0,3}}{0}\b)"


class CrashLog:
    """The entries of the log about one crash.

    Args:
        seen: The bundle, or the pasted log, that it belongs to.
    """

    def __init__(self, seen: Observed) -> None:
        self._seen = seen
        self._recorded = dict_of(seen.bundle.get("system_log"))

    @property
    def reason(self) -> str | None:
        """Why the log could not be read; None when no reason was recorded."""
        return text_of(self._recorded.get("reason"))

    @property
    def readable(self) -> bool:
        """True if the log could be read."""
        return bool(self._recorded.get("readable"))

    @cached_property
    def _lines(self) -> list[str]:
        """Lines near the death; for a pasted log, all lines of both texts."""
        if self._seen.pasted is not None:
            both = (*self._seen.story.lines, *self._seen.kernel_log.lines)
            return [line.text for line in both]
        lines = self._recorded.get("lines")
        found = []
        for line in list_of(lines):
            when, text = number_of(dict_of(line).get("time")), text_of(dict_of(line).get("text"))
            if text is not None and (when is None or abs(when - self._seen.died) < 60):
                found.append(text)
        return found

    @cached_property
    def oom_kills(self) -> list[OomKill]:
        """OOM kills in the system log near the death, oldest first."""
        return oom_kills(self._lines)

    @cached_property
    def xids(self) -> list[Xid]:
        """GPU faults that the driver reported near the death: first from the system log, then events without a log line."""
        found = xids(self._lines)
        for gpu in self._seen.gpus:
            for when, number in gpu.faults:
                if not any(old.number == number and gpu.is_at(old.place) for old in found):
                    text = f"The driver reported Xid {number} on {gpu.title}, {_apart(when, self._seen.died)}"
                    found.append(
                        Xid(number, gpu.bus_id or gpu.title, None, "", text, is_event=True)
                    )
        return found

    @cached_property
    def faults(self) -> list[OsFault]:
        """Failing memory and storage in the system log near the death, oldest first."""
        return os_faults(self._lines)

    @cached_property
    def kill_of_kernel(self) -> OomKill | None:
        """The OOM kill of this process, if the system log has one.

        A pasted log rarely names its own process. The victim is then, in this order: the process that the log names, one
        that runs Python, one whose job or container the log names, or the only victim unless it is a well-known program. If
        no line names a victim, it is a Python process that asked for memory in vain. A text about nothing but kills is about
        the last one, whatever ran there.
        """
        kills = self.oom_kills
        if self._seen.pasted is None:
            return next((kill for kill in reversed(kills) if kill.pid == self._seen.pid), None)
        ours = (
            [kill for kill in kills if self._names_process(kill)]
            or [kill for kill in kills if runs_python(kill.name)]
            or [kill for kill in kills if self._names_group(kill)]
            or [kill for kill in kills if len(kills) == 1 and not OTHER_NAMES.match(kill.name)]
            or [kill for kill in asked_in_vain(self._lines) if not kills and runs_python(kill.name)]
            or (kills if self._shows_only_kills else [])
        )
        return ours[-1] if ours else None

    @property
    def kill_is_certain(self) -> bool:
        """True for a pasted log whose program is surely the victim: it names the process, or contains only a system log."""
        kill = self.kill_of_kernel
        if self._seen.pasted is None or kill not in self.oom_kills or kill.by_limit is None:
            return False
        return self._names_process(kill) or (runs_python(kill.name) and not self._program_lines)

    @property
    def is_all(self) -> bool:
        """True for a pasted log that has nothing but lines of the operating system, and no other hint at the end."""
        if self._seen.pasted is None or self._seen.pasted.status is not None:
            return False
        others = (line for line in self._program_lines if line.strip() and not os_faults([line]))
        return self._seen.story.best is None and next(others, None) is None

    @property
    def _shows_only_kills(self) -> bool:
        """True if no line shows a step or an end of a program: the kills are all that the text is about."""
        story, separate = self._seen.story, self._seen.kernel_log.lines
        alone = not separate and story.last_progress < 0 and not story.ended_badly
        asked = any(runs_python(kill.name) for kill in asked_in_vain(self._lines))
        return alone and not asked and len(self._program_lines) <= 1

    @cached_property
    def _program_lines(self) -> list[str]:
        """Lines of a pasted log that the program wrote, not the operating system."""
        lines = [line.text for line in self._seen.story.lines]
        return [line for line in rejoined(lines) if not is_of_system(line)]

    def _names_process(self, kill: OomKill) -> bool:
        named = re.compile(_PROCESS.format(kill.pid))
        return kill.pid is not None and any(named.search(line) for line in self._program_lines)

    def _names_group(self, kill: OomKill) -> bool:
        """True if the program's lines name the job or container whose limit was reached."""
        text = "\n".join(self._program_lines)
        return any(name[:12] in text for name in _CONTAINER.findall(kill.group)) or any(
            re.search(_NAMES_JOB.format(job), text) for job in _JOB.findall(kill.group)
        )

    @property
    def kill_of_others(self) -> OomKill | None:
        """The newest OOM kill if the log has none of this process: the counted kill was then of another process."""
        return self.oom_kills[-1] if self.oom_kills and self.kill_of_kernel is None else None


def _apart(when: float, died: float) -> str:
    if abs(when - died) < 0.05:
        return "at the end"
    return f"{human_seconds(abs(when - died))} {'after' if when > died else 'before'} the end"
