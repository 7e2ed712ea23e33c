"""Forwards what a kernel wrote to fd 2 just before it ended, and adds it to the recording.

The kernel's thread (``stderr_tail.py``) ends with the kernel. What it had not yet forwarded is then in the newest file of
the recording and in the pipe. Two processes hold what is needed to finish its work: the watcher, and, if there is no
watcher, a helper process. The helper runs this file as a program, with the standard library only and few imports, because
one waits beside each such kernel. It reads nothing while the kernel runs.

The position up to which text was forwarded is in memory shared by these processes: one offset for each of the two
newest files. The kernel's operating system updates it in the same call that forwards the text (``sendfile``), so no text is
forwarded twice, even if the kernel is killed during that call.

The helper also records how the kernel ended, because the program that started the kernel keeps that to itself.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import struct
import sys
import time

# How the kernel ended: ``{"status": N}``, N as of wait(2).
EXIT = "exit.json"
_EXIT_FIELD = 52
# Source: include/uapi/linux/pidfd.h, struct pidfd_info, first version: 64 bytes.
_PIDFD_INFO = struct.Struct("<QQ11Ii")
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO.size << 16) | (0xFF << 8) | 11
# Offsets in the files with even and odd numbers.
POSITION = struct.Struct("<2q")
NOTHING_LEFT = POSITION.pack(1 << 62, 1 << 62)
FINISH_SECONDS = 1.0
# Children may write a little after their kernel's end: Python's resource tracker reports leaked shared memory.
CHILD_SECONDS = 0.3
DISMISS = b"x"
_REST_BYTES = _FILE_BYTES = 1024 * 1024
# A pipe or terminal that is ready takes so much without blocking (PIPE_BUF).
_PIECE_BYTES = 4096
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def finish(
    folder: int | None,
    pipe: int,
    position: int,
    original: int,
    *,
    child_seconds: float = 0.0,
) -> None:
    """Record and forward the rest, after the kernel's end. Takes at most about a second; raises nothing.

    Args:
        folder: Descriptor of the recording's folder; None: there is no recording.
        pipe: Read end of the kernel's fd 2.
        position: The shared memory.
        original: Where the text goes; -1: nowhere.
        child_seconds: How long to wait at most for children that still hold the pipe.
    """
    end = time.monotonic() + max(FINISH_SECONDS, child_seconds)
    unsent = _unsent(folder, position)
    record = _Record(folder)
    try:
        os.set_blocking(pipe, False)
        rest = _read(pipe, _REST_BYTES)
        record.add(rest)
        _write(original, unsent + rest, end)
        left = _REST_BYTES - len(rest)
        until = min(time.monotonic() + child_seconds, end)
        more = select.poll()
        more.register(pipe, select.POLLIN)
        while left > 0 and (ready := more.poll(max(0.0, until - time.monotonic()) * 1000)):
            late = _read(pipe, left)
            if not late and ready[0][1] & select.POLLHUP:
                break
            record.add(late)
            _write(original, late, end)
            left -= len(late)
    except OSError:
        pass


def _unsent(folder: int | None, position: int) -> bytes:
    """The text of the newest file that was not forwarded; from now on, nothing counts as not forwarded."""
    if folder is None or position < 0:
        return b""
    try:
        number = _newest(folder)
        sent = POSITION.unpack(os.pread(position, POSITION.size, 0))[number % 2]
        os.pwrite(position, NOTHING_LEFT, 0)
        file = os.open(_name(number), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0), dir_fd=folder)
        try:
            size = min(os.fstat(file).st_size, _FILE_BYTES)
            return os.pread(file, size - sent, sent) if 0 <= sent < size else b""
        finally:
            os.close(file)
    except (OSError, struct.error):
        return b""


def _newest(folder: int) -> int:
    """Number of the newest file ``stderr.N.txt``; 0: there is none."""
    numbers = [
        name[7:-4] for name in os.listdir(folder) if name[:7] == "stderr." and name[-4:] == ".txt"
    ]
    return max((int(n) for n in numbers if n.isascii() and n.isdigit() and len(n) < 20), default=0)


def _name(number: int) -> str:
    return f"stderr.{number}.txt"


class _Record:
    """A new file of the recording, made at the first text."""

    def __init__(self, folder: int | None) -> None:
        self._folder = folder
        self._file = -1

    def add(self, text: bytes) -> None:
        """Add text; a failure is ignored, because the text is still to be forwarded."""
        if not text or self._folder is None:
            return
        try:
            if self._file < 0:
                name = _name(_newest(self._folder) + 1)
                self._file = os.open(name, _NEW_FILE, 0o600, dir_fd=self._folder)
            while text:
                text = text[os.write(self._file, text) :]
        except OSError:
            self._folder = None


def _read(pipe: int, limit_bytes: int) -> bytes:
    """What is in the pipe now."""
    found = bytearray()
    try:
        while len(found) < limit_bytes and (part := os.read(pipe, limit_bytes - len(found))):
            found += part
    except BlockingIOError:
        pass
    return bytes(found)


def _write(target: int, text: bytes, end: float) -> None:
    """Write as much as the target takes until the monotonic second `end`."""
    ready = select.poll()
    if target >= 0:
        ready.register(target, select.POLLOUT)
    while target >= 0 and text:
        if not ready.poll(max(0.0, end - time.monotonic()) * 1000):
            return
        try:
            text = text[os.write(target, text[:_PIECE_BYTES]) :]
        except OSError as bad:
            if bad.errno != errno.EAGAIN:
                return
            time.sleep(0.001)


def opened_again(descriptor: int) -> int:
    """A descriptor of the same terminal or pipe for writes that do not block; for other files, a copy.

    The flag belongs to the open file, which other processes use too, so it is not set there.
    """
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return os.open(f"/proc/self/fd/{descriptor}", flags)
        except OSError:  # a terminal of another user
            pass
    return os.dup(descriptor)


def status_of_reaped(pidfd: int) -> int | None:
    """The wait status of a process that its parent has waited for (Linux 6.15 and later); None if it is not known."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        request = _PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13)
        mask, *_, status = _PIDFD_INFO.unpack(fcntl.ioctl(pidfd, _PIDFD_GET_INFO, request))
    except OSError:
        return None
    return int(status) if mask & _PIDFD_INFO_EXIT else None


def status_of_zombie(pidfd: int) -> int | None:
    """The wait status of a process that has ended and that its parent has not yet waited for; None if it is not known.

    Source: proc_pid_stat(5), ``exit_code``; proc_pid_fdinfo(5).
    """
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as info:
            pid = next((int(line[4:]) for line in info if line.startswith("Pid:")), -1)
        with open(f"/proc/{pid}/stat", "rb") as stat_file:
            fields = stat_file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    # The first two fields are before the parenthesis. X: being removed.
    return int(fields[_EXIT_FIELD - 3]) if fields and fields[0] in (b"Z", b"X") else None


def _leave_exit(folder: int, pidfd: int) -> None:
    status = status_of_zombie(pidfd)
    if status is None:
        status = status_of_reaped(pidfd)
    if status is None:
        return
    try:
        file = os.open(EXIT, _NEW_FILE, 0o600, dir_fd=folder)
        os.write(file, b'{"status": %d}' % status)
        os.close(file)
    except OSError:
        pass


def try_lock(folder: int) -> bool:
    """Lock a recording's folder; True also where the file system has no such locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def wait_for_lock(folder: int) -> None:
    """Lock a recording's folder, for at most three seconds: a helper process may be at work there."""
    end = time.monotonic() + 3 * FINISH_SECONDS
    while not try_lock(folder) and time.monotonic() < end:
        time.sleep(0.005)


def wait_until_finished(path: str | os.PathLike[str]) -> None:
    """Wait until a dead kernel's recording has its last text."""
    try:
        folder = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return
    try:
        wait_for_lock(folder)
    finally:
        os.close(folder)


# --- as a program


def main() -> None:
    """Wait for the end of the kernel, and finish its work; end at once when dismissed."""
    folder, pipe, position, original, kernel, lifeline = map(int, sys.argv[1:])
    # Held until this process ends, in most cases since its kernel started it: a reader of the recording waits for it.
    wait_for_lock(folder)
    ends = select.poll()
    ends.register(kernel, select.POLLIN)
    ends.register(lifeline, select.POLLIN)
    if any(ready == lifeline for ready, _ in ends.poll()):
        if os.read(lifeline, 1) == DISMISS:
            return
        # No process holds the other end: the kernel is ending, or has become another program.
        ends.unregister(lifeline)
        ends.poll(FINISH_SECONDS * 1000)
    _leave_exit(folder, kernel)
    finish(folder, pipe, position, opened_again(original), child_seconds=CHILD_SECONDS)


if __name__ == "__main__":
    main()
