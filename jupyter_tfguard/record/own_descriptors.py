"""Descriptors that stay open for long. User code may close them, as daemons close all, and then reuse their numbers.

So the identity is checked before each use.
"""

from __future__ import annotations

import array
import errno
import os
import stat

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = termios = None  # type: ignore[assignment]

Identity = tuple[int, int]


def identity(descriptor: int) -> Identity | None:
    """Device and inode of the open file; None if the descriptor is closed."""
    try:
        found = os.fstat(descriptor)
    except TimeoutError:
        raise  # an OSError too, but raised by the user's signal handler
    except OSError:
        return None
    return found.st_dev, found.st_ino


def close_ours(descriptor: int, expected: Identity | None) -> None:
    """Close a descriptor if it still refers to the expected file."""
    if identity(descriptor) == expected:
        os.close(descriptor)


def unread_bytes(descriptor: int) -> int:
    """Unread bytes in a pipe, from a descriptor of either end; 0 for anything else."""
    try:
        if fcntl is not None and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            count = array.array("i", [0])
            fcntl.ioctl(descriptor, termios.FIONREAD, count)
            return count[0]
    except OSError:
        pass
    return 0


class OwnDescriptors:
    """Descriptors of the guard in one process, each with its identity."""

    def __init__(self) -> None:
        self._identities: dict[int, Identity] = {}
        self._borrowed: set[int] = set()

    def borrow(self, descriptor: int) -> int:
        """Use a descriptor that other code keeps open.

        Raises:
            OSError: It is not open.
        """
        found = os.fstat(descriptor)
        self._identities[descriptor] = found.st_dev, found.st_ino
        self._borrowed.add(descriptor)
        return descriptor

    def add(self, descriptor: int) -> int:
        """Take over a descriptor; closed if that fails.

        Raises:
            OSError: It is not open.
        """
        try:
            found = os.fstat(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._identities[descriptor] = found.st_dev, found.st_ino
        return descriptor

    def inode(self, descriptor: int) -> int | None:
        """Inode of the file when the descriptor was added; None for any other descriptor."""
        expected = self._identities.get(descriptor)
        return None if expected is None else expected[1]

    def is_open_at(self, descriptor: int, number: int) -> bool:
        """True if descriptor `number` refers to the file of the added `descriptor`."""
        return identity(number) == self._identities.get(descriptor, ())

    def check(self, descriptor: int) -> None:
        """Raise OSError if other code closed the descriptor: its number may have been reused."""
        if not self.is_open_at(descriptor, descriptor):
            raise OSError(errno.EBADF, "other code closed a file descriptor of the guard")

    def close(self, descriptor: int) -> None:
        """Close one, if it is still ours."""
        close_ours(descriptor, self._identities.pop(descriptor, None))

    def close_all(self) -> None:
        """Close all that are still ours."""
        for descriptor in list(self._identities):
            if descriptor not in self._borrowed:
                self.close(descriptor)
        self._identities.clear()
