"""File descriptor 2: whose file it stands for, and what it was before. User code may have put another file there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable

from .linux_files import Identity, close_ours, identity
from .opened_anew import OpenedAnew
from .textfile import TextFile

STDERR = 2


class StderrDescriptor:
    """fd 2, which changes hands under one lock.

    Args:
        before: A copy of fd 2 as it was; owned from here on.
        given_back: Set, under the lock, when fd 2 is as it was again; from then on nothing is put there.
    """

    def __init__(self, before: int, given_back: threading.Event) -> None:
        self._before = before
        self._before_identity: Identity | None = identity(before)
        self._given_back = given_back
        self._lock = threading.Lock()

    def stands_for(self, *files: TextFile | OpenedAnew) -> bool:
        """True when fd 2 is one of these files."""
        found = identity(STDERR)  # None: user code closed it
        return found is not None and any(file.identity == found for file in files)

    def put(self, file: TextFile, *, instead_of: Iterable[TextFile | OpenedAnew]) -> None:
        """Let fd 2 be this file, where it is one of those; any other there is the user's, and stays."""
        with self._lock:
            if not self._given_back.is_set() and self.stands_for(*instead_of):
                os.dup2(file.descriptor, STDERR)

    def give_back(self, ours: Callable[[], Iterable[TextFile | OpenedAnew]]) -> None:
        """Let fd 2 be what it was, unless user code has replaced ours.

        Args:
            ours: Our files; asked under the lock, for until then they may take turns.
        """
        with self._lock:
            self._given_back.set()
            if identity(self._before) == self._before_identity and self.stands_for(*ours()):
                os.dup2(self._before, STDERR)

    def close(self) -> None:
        """Give the copy of what it was before back."""
        close_ours(self._before, self._before_identity)
