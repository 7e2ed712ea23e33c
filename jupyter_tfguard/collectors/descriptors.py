"""How many file descriptors may be kept open for long: a server has its own use for them.

A quarter of what the process may have (``RLIMIT_NOFILE``, getrlimit(2)) may be kept in all, one pidfd and one file for each
kernel. Files of samples get half of that at most, so that pidfds, which tell a death at once, are the last to go without.
Whoever gets none opens what it needs anew each time and closes it again.
"""

from __future__ import annotations

import errno
import threading

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

SHARE = 0.25
FILES_SHARE = 0.5
NONE_LEFT = (errno.EMFILE, errno.ENFILE)


class DescriptorBudget:
    """Counts the descriptors that are kept.

    Args:
        limit: Kept in all at most; None = a quarter of the process's limit at the time of asking.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._kept = 0
        self._lock = threading.Lock()

    @property
    def kept_count(self) -> int:
        """Descriptors kept now."""
        return self._kept

    @property
    def limit(self) -> int:
        """Descriptors that may be kept now."""
        if self._limit is not None:
            return self._limit
        if resource is None:
            return 1 << 20
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return 1 << 20 if soft == resource.RLIM_INFINITY else int(soft * SHARE)

    def take(self, share: float = 1.0) -> bool:
        """Ask for one: True when it may be kept, as long as less than `share` of all is taken."""
        with self._lock:
            if self._kept + 1 > self.limit * share:
                return False
            self._kept += 1
            return True

    def give(self) -> None:
        """Say that one was closed."""
        with self._lock:
            self._kept -= 1


BUDGET = DescriptorBudget()
