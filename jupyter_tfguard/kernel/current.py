"""The guard session of this kernel."""

from __future__ import annotations

import os

from .session import GuardSession

session: GuardSession | None = None
_pid = 0


def current() -> GuardSession | None:
    """The guard of this kernel; None if it is not running, and in forked children."""
    return session if os.getpid() == _pid else None


def of_parent() -> GuardSession | None:
    """In a forked child, the guard of the parent kernel; None in the kernel itself."""
    return None if os.getpid() == _pid else session


def set_current(started: GuardSession | None) -> None:
    """Store the guard of this process; None once it has ended."""
    global session, _pid
    session, _pid = started, os.getpid()
