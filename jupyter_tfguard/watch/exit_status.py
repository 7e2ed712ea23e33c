"""How a process ended, read without reaping it, so that whoever started it can still wait for it.

Ways, best first: ``waitid`` with WNOWAIT (only the parent may), ``PIDFD_GET_INFO`` (Linux 6.15 and later, once somebody
has reaped it), field 52 of ``/proc/[pid]/stat`` (while it is a zombie), the return code its starter got.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from dataclasses import dataclass

from ..record.facts import ExitFacts
from ..record.identity import ProcessIdentity, stat_fields

# Source: include/uapi/linux/wait.h, asm-generic/siginfo.h, asm/unistd.h.
_P_PID, _P_PIDFD = 1, 3
_WNOHANG, _WEXITED, _WNOWAIT = 0x1, 0x4, 0x01000000
_CLD_EXITED, _CLD_KILLED, _CLD_DUMPED = 1, 2, 3
_WAITID_CALL = {"x86_64": 247, "aarch64": 95, "riscv64": 95, "loongarch64": 95, "ppc64le": 272}
_SIGINFO = struct.Struct("<iii4xiIi")  # signo, errno, code, padding, pid, uid, status
_MAXRSS_OFFSET = 32  # ru_maxrss in struct rusage, behind two struct timeval of 16 bytes

# Source: include/uapi/linux/pidfd.h, struct pidfd_info, first version: 64 bytes.
_PIDFD_INFO = struct.Struct("<QQ11Ii")
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO.size << 16) | (0xFF << 8) | 11


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        exit: Signal or code, and where it was read.
        peak_bytes: Highest resident memory by rusage; None when not told. It is inherited over fork and exec: a kernel
            started by a server of 1 GiB reports at least 1 GiB.
    """

    exit: ExitFacts
    peak_bytes: int | None = None


def read_end(identity: ProcessIdentity, pidfd: int | None) -> Ended | None:
    """How the process ended; None while it runs, or when nothing here may tell."""
    return _by_waitid(identity.pid, pidfd) or _by_pidfd_info(pidfd) or _by_zombie_stat(identity)


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


def _by_waitid(pid: int, pidfd: int | None) -> Ended | None:
    call = _WAITID_CALL.get(platform.machine()) if sys.platform == "linux" else None
    if call is None or sys.byteorder != "little":
        return _by_os_waitid(pid)
    siginfo = ctypes.create_string_buffer(128)
    rusage = ctypes.create_string_buffer(256)
    options = _WEXITED | _WNOWAIT | _WNOHANG
    libc = ctypes.CDLL(None, use_errno=True)
    # P_PIDFD is known from Linux 5.4 on; an id is safe too while the child is not reaped.
    for kind, what in ((_P_PIDFD, pidfd), (_P_PID, pid)):
        if what is None or libc.syscall(call, kind, what, siginfo, options, rusage) != 0:
            continue
        _, _, code, found, _, status = _SIGINFO.unpack_from(siginfo)
        if found == 0:
            return None
        peak = struct.unpack_from("<q", rusage, _MAXRSS_OFFSET)[0] * 1024
        exit_facts = _facts(code, status)
        return Ended(exit_facts, peak or None) if exit_facts else None
    return None


def _by_os_waitid(pid: int) -> Ended | None:
    if not hasattr(os, "waitid"):
        return None
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except OSError:
        return None
    exit_facts = _facts(found.si_code, found.si_status) if found is not None else None
    return Ended(exit_facts) if exit_facts else None


def _facts(code: int, status: int) -> ExitFacts | None:
    if code == _CLD_EXITED:
        return ExitFacts(None, status, "waitid")
    if code in (_CLD_KILLED, _CLD_DUMPED):
        return ExitFacts(signal_name(status), None, "waitid")
    return None


def _by_pidfd_info(pidfd: int | None) -> Ended | None:
    if pidfd is None or sys.platform != "linux":
        return None
    try:
        import fcntl
    except ImportError:
        return None
    request = _PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13)
    try:
        answer = fcntl.ioctl(pidfd, _PIDFD_GET_INFO, request)
    except OSError:
        return None
    mask, *_, status = _PIDFD_INFO.unpack(answer)
    if not mask & _PIDFD_INFO_EXIT:
        return None
    return Ended(_from_wait_status(status, "pidfd_info"))


def _by_zombie_stat(identity: ProcessIdentity) -> Ended | None:
    fields = stat_fields(identity.pid) if sys.platform == "linux" else None
    if not fields or fields[0] not in "ZX" or int(fields[19]) != identity.start_time:
        return None
    try:
        owner = os.stat(f"/proc/{identity.pid}").st_uid
    except OSError:
        return None
    # To other users Linux shows 0 here, which would read as a clean end.
    if os.geteuid() not in (0, owner) or len(fields) < 50:
        return None
    return Ended(_from_wait_status(int(fields[49]), "zombie_stat"))


def _from_wait_status(status: int, how: str) -> ExitFacts:
    number = status & 0x7F
    if number:
        return ExitFacts(signal_name(number), None, how)
    return ExitFacts(None, (status >> 8) & 0xFF, how)
