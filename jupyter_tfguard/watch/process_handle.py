"""One living process, held so that its id cannot come to mean another one."""

from __future__ import annotations

import contextlib
import os

from ..errors import SourceUnavailable
from ..record.identity import ProcessIdentity
from .exit_status import Ended, read_end


class ProcessHandle:
    """A process, with a pidfd where the system has them (Linux 5.3 and later).

    Raises:
        SourceUnavailable: There is no process with this id, not even a zombie.
    """

    def __init__(self, pid: int) -> None:
        self._pidfd: int | None = None
        identity = ProcessIdentity.of(pid)
        if identity is None:
            raise SourceUnavailable(f"there is no process {pid}")
        self.identity = identity
        if hasattr(os, "pidfd_open"):
            # Not permitted in some sandboxes, or out of descriptors: then the process is asked for again and again.
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(pid)
        if ProcessIdentity.of(pid) != identity:
            self.close()
            raise SourceUnavailable(f"process {pid} ended just now")

    def fileno(self) -> int | None:
        """The pidfd, readable once the process has ended; None where there is none."""
        return self._pidfd

    def is_running(self) -> bool:
        """True while the process lives; a zombie is dead."""
        return self.identity.is_running()

    def end(self) -> Ended | None:
        """How the process ended; None while it runs, or when nothing here may tell. It is not reaped."""
        return read_end(self.identity, self._pidfd)

    def close(self) -> None:
        """Give the pidfd back; doing it twice is harmless."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def is_running(pid: int) -> bool:
    """True while a process with this id lives; a zombie is dead."""
    identity = ProcessIdentity.of(pid)
    return identity is not None and identity.is_running()
