"""The bundle as rules see it: what was observed, and what follows from several observations."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..decode import dict_of, list_of, number_of, text_of
from ..memory.limits import Limit
from .activity import last_cell
from .leak import Leak, host_growth
from .limits_seen import binding_limit_of, memory_limit_of
from .observed import Observed
from .pasted import Pasted
from .system_log import CrashLog
from .verdict import TextVerdict, of_pasted, of_recorded

_CHILD_KILLED = "child_oom_killed"


class Evidence(Observed):
    """One bundle, or one pasted log, and what follows from it.

    Attributes:
        cause: Cause of the end, found by the rules that ignore earlier deaths; None until these rules have run.
    """

    def __init__(self, bundle: dict[str, Any], pasted: Pasted | None = None) -> None:
        super().__init__(bundle, pasted)
        self.cause: str | None = None

    @cached_property
    def verdict(self) -> TextVerdict | None:
        """The cause that the text names; None when it says nothing about this end."""
        if self.pasted is not None:
            return of_pasted(self.story, self.kernel_log, self.pasted.status)
        return of_recorded(self)

    @cached_property
    def system_log(self) -> CrashLog:
        """The lines of the operating system's log about this crash."""
        return CrashLog(self)

    @cached_property
    def growth(self) -> Leak | None:
        """Steady growth of the kernel's memory over epochs, fits or runs; None when there was none."""
        return host_growth(self)

    def limit(self) -> Limit | None:
        """The limit with the least headroom at its peak, of memory or of the process.

        For display. Use :meth:`memory_limit` to judge whether memory ran out in a way that kills.
        """
        return binding_limit_of(self)

    def memory_limit(self) -> Limit | None:
        """The limit of resident memory that binds the kernel: of its container or of the machine."""
        return memory_limit_of(self)

    @cached_property
    def earlier_deaths(self) -> list[tuple[float, str]]:
        """(Unix seconds, cause) of earlier crashes of this notebook, newest first; without a notebook, of this kernel."""
        recorded = self.bundle.get("earlier_deaths")
        key = "notebook_path" if self.identity.get("notebook_path") else "kernel_id"
        found = []
        for crash in map(dict_of, list_of(recorded)):
            when, cause = number_of(crash.get("died")), text_of(crash.get("cause"))
            ours = bool(crash.get(key)) and crash.get(key) == self.identity.get(key)
            ours = ours and crash.get("kernel_alive") is not True
            if ours and cause is not None and when is not None and when <= self.died:
                found.append((when, cause))
        return sorted(found, reverse=True)

    @cached_property
    def worker_killed(self) -> float | None:
        """When a child process was killed for lack of memory in the cell that hung, Unix seconds; None without such a report."""
        cell, recorded = last_cell(self), self.bundle.get("earlier_deaths")
        if self.hang is None or cell is None or cell.time is None:
            return None
        for crash in map(dict_of, list_of(recorded)):
            when, kernel = number_of(crash.get("died")), crash.get("kernel_id")
            ours = bool(kernel) and kernel == self.identity.get("kernel_id")
            of_child = crash.get("kernel_alive") is True and crash.get("cause") == _CHILD_KILLED
            if ours and of_child and when and cell.time - 1 <= when <= self.hang.noticed:
                return when
        return None
