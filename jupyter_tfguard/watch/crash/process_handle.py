"""Handle of one process that is safe against reuse of the process id, and its exit status.

The exit status is read without reaping the process, so that its parent can still wait for it. Methods, best first:
:func:`os.waitid` with WNOWAIT (parent only), ``PIDFD_GET_INFO`` (Linux 6.15 and later, after the process was reaped),
the return code that the parent read.
"""

from __future__ import annotations

import contextlib
import os
import select

from ...errors import SourceUnavailable
from ...record.facts import ExitFacts, signal_name
from ...record.identity import ProcessIdentity
from ...record.late_stderr import status_of_reaped


class ProcessHandle:
    """A process, with a pidfd if the system supports it (Linux 5.3 and later) and a descriptor is available.

    Raises:
        SourceUnavailable: There is no process with this id, not even a zombie, or it cannot be read now.
    """

    def __init__(self, pid: int) -> None:
        self._pidfd: int | None = None
        identity = ProcessIdentity.of(pid)
        if identity is None:
            raise SourceUnavailable(f"no process {pid}")
        self.identity = identity
        if hasattr(os, "pidfd_open"):
            # Fails in some sandboxes, and without free descriptors: then the sampler detects the end.
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(pid)
        if ProcessIdentity.of(pid) != identity:
            self.close()
            raise SourceUnavailable(f"process {pid} ended just now")

    def fileno(self) -> int | None:
        """The pidfd, which becomes readable when the process has ended; None if there is none."""
        return self._pidfd

    def is_running(self) -> bool:
        """True while the process runs; False for a zombie."""
        pidfd = self._pidfd
        if pidfd is not None and hasattr(select, "poll"):
            with contextlib.suppress(OSError):
                ready = select.poll()
                ready.register(pidfd, select.POLLIN)
                return not ready.poll(0)
        return self.identity.is_running()

    def end(self) -> ExitFacts | None:
        """The exit status; None while the process runs, or if it cannot be read here. Does not reap the process."""
        return read_end(self.identity.pid, self._pidfd)

    def close(self) -> None:
        """Close the pidfd; idempotent."""
        pidfd, self._pidfd = self._pidfd, None
        if pidfd is not None:
            os.close(pidfd)


def is_running(pid: int) -> bool:
    """True while a process with this id runs; False for a zombie."""
    identity = ProcessIdentity.of(pid)
    return identity is not None and identity.is_running()


def read_end(pid: int, pidfd: int | None) -> ExitFacts | None:
    """The exit status; None while the process runs, or if it cannot be read here."""
    return _by_waitid(pid, pidfd) or _by_pidfd_info(pidfd)


def from_returncode(returncode: int) -> ExitFacts:
    """The exit status from a return code of :class:`subprocess.Popen`: minus the signal, or the exit code."""
    if returncode < 0:
        return ExitFacts(signal_name(-returncode), None, "returncode")
    return ExitFacts(None, returncode, "returncode")


def _by_waitid(pid: int, pidfd: int | None) -> ExitFacts | None:
    if not hasattr(os, "waitid"):
        return None
    kind, process = os.P_PID, pid
    if pidfd is not None and hasattr(os, "P_PIDFD"):
        kind, process = os.P_PIDFD, pidfd  # safe against reuse of the process id
    try:
        found = os.waitid(kind, process, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except OSError:
        return None
    if found is None:
        return None
    if found.si_code == os.CLD_EXITED:
        return ExitFacts(None, found.si_status, "waitid")
    return ExitFacts(signal_name(found.si_status), None, "waitid")


def _by_pidfd_info(pidfd: int | None) -> ExitFacts | None:
    status = None if pidfd is None else status_of_reaped(pidfd)
    return None if status is None else ExitFacts.of_status(status, "pidfd_info")
