"""The guard of this kernel, once it was started."""

from __future__ import annotations

import os

from .session import GuardSession

session: GuardSession | None = None
_pid = 0


def current() -> GuardSession | None:
    """The guard of this kernel; None when there is none, and in forked children."""
    return session if os.getpid() == _pid else None


def of_parent() -> GuardSession | None:
    """In a forked child, the guard of the kernel that it was forked from; None in the kernel itself."""
    return None if os.getpid() == _pid else session


def set_current(started: GuardSession | None) -> None:
    """Remember the guard of this process; None when it has ended."""
    global session, _pid
    session, _pid = started, os.getpid()
