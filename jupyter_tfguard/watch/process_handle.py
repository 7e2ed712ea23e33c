"""One living process, held so that its id cannot come to mean another one."""

from __future__ import annotations

import contextlib
import os
import select
import sys

from ..errors import SourceUnavailable
from ..record.facts import ExitFacts
from ..record.identity import ProcessIdentity, stat_fields
from .exit_status import read_end

_DEAD = ("Z", "X")


class ProcessHandle:
    """A process, with a pidfd where the system has them (Linux 5.3 and later) and a descriptor is left.

    Raises:
        SourceUnavailable: There is no process with this id, not even a zombie, or it cannot be looked at now.
    """

    def __init__(self, pid: int) -> None:
        self._pidfd: int | None = None
        identity = ProcessIdentity.of(pid)
        if identity is None:
            raise SourceUnavailable(f"there is no process {pid}")
        self.identity = identity
        if hasattr(os, "pidfd_open"):
            # Not permitted in some sandboxes, or no descriptor is left: then the sampler notices the end.
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(pid)
        if ProcessIdentity.of(pid) != identity:
            self.close()
            raise SourceUnavailable(f"process {pid} ended just now")

    def fileno(self) -> int | None:
        """The pidfd, readable once the process has ended; None where there is none."""
        return self._pidfd

    def is_running(self) -> bool:
        """True while the process lives, or as long as nothing says otherwise; a zombie is dead."""
        pidfd = self._pidfd
        if pidfd is not None and hasattr(select, "poll"):
            with contextlib.suppress(OSError):
                ready = select.poll()
                ready.register(pidfd, select.POLLIN)
                return not ready.poll(0)
        if sys.platform != "linux":
            return self.identity.is_running()
        fields = stat_fields(self.identity.pid)
        if fields is not None:
            return int(fields[19]) == self.identity.start_time and fields[0] not in _DEAD
        # Nothing could be read. Without a free descriptor nothing can; that is not to be taken for a death.
        return _exists(self.identity.pid) and self.end() is None

    def end(self) -> ExitFacts | None:
        """How the process ended; None while it runs, or when nothing here may tell. It is not reaped."""
        return read_end(self.identity.pid, self._pidfd)

    def close(self) -> None:
        """Give the pidfd back; doing it twice is harmless."""
        pidfd, self._pidfd = self._pidfd, None
        if pidfd is not None:
            os.close(pidfd)


def is_running(pid: int) -> bool:
    """True while a process with this id lives, or as long as nothing says otherwise; a zombie is dead."""
    if sys.platform != "linux":
        identity = ProcessIdentity.of(pid)
        return identity is not None and identity.is_running()
    fields = stat_fields(pid)
    return _exists(pid) if fields is None else fields[0] not in _DEAD


def _exists(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")  # needs no descriptor
