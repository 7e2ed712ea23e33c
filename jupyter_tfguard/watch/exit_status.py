"""How a process ended, read without reaping it, so that whoever started it can still wait for it.

Ways, best first: :func:`os.waitid` with WNOWAIT (only the parent may), ``PIDFD_GET_INFO`` (Linux 6.15 and later, once
somebody has reaped it), the return code its starter got.
"""

from __future__ import annotations

import os
import signal
import struct
import sys

from ..record.facts import ExitFacts

# Source: include/uapi/linux/pidfd.h, struct pidfd_info, first version: 64 bytes.
_PIDFD_INFO = struct.Struct("<QQ11Ii")
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO.size << 16) | (0xFF << 8) | 11


def read_end(pid: int, pidfd: int | None) -> ExitFacts | None:
    """How the process ended; None while it runs, or when nothing here may tell."""
    return _by_waitid(pid, pidfd) or _by_pidfd_info(pidfd)


def from_returncode(returncode: int) -> ExitFacts:
    """From what :class:`subprocess.Popen` calls return code: minus the signal, or the exit code."""
    if returncode < 0:
        return ExitFacts(signal_name(-returncode), None, "returncode")
    return ExitFacts(None, returncode, "returncode")


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; ``SIGRTMIN+3`` and the like for signals without a name of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        first = getattr(signal, "SIGRTMIN", None)
        last = getattr(signal, "SIGRTMAX", None)
        if first is not None and last is not None and first <= number <= last:
            return f"SIGRTMIN+{number - first}"
        return f"signal {number}"


def _by_waitid(pid: int, pidfd: int | None) -> ExitFacts | None:
    if not hasattr(os, "waitid"):
        return None
    kind, process = os.P_PID, pid
    if pidfd is not None and hasattr(os, "P_PIDFD"):
        kind, process = os.P_PIDFD, pidfd  # which never means a later process
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
    if pidfd is None or sys.platform != "linux":
        return None
    import fcntl

    request = _PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13)
    try:
        answer = fcntl.ioctl(pidfd, _PIDFD_GET_INFO, request)
    except OSError:
        return None
    mask, *_, status = _PIDFD_INFO.unpack(answer)
    if not mask & _PIDFD_INFO_EXIT:
        return None
    if status & 0x7F:
        return ExitFacts(signal_name(status & 0x7F), None, "pidfd_info")
    return ExitFacts(None, (status >> 8) & 0xFF, "pidfd_info")
