"""What the thread of native text does: waits until somebody writes, takes what is new, passes it on, tells what was left out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .linux_files import WriteWatch
from .outlet import Outlet
from .textfile_pair import TextFilePair

_POLL_SECONDS = 0.05
_IDLE_POLL_SECONDS = 0.25
# While a reader empties its pipe: a pause makes few large writes of many small ones.
_SENDING_SECONDS = 0.002
_HURRY_BYTES = 16 * 1024
_TELL_SECONDS = 1.0
FLUSH_SECONDS = 2.0


class Forwarder:
    """Passes the text of the two files on, in :meth:`run`, until it is told to stop.

    Args:
        pair: The files.
        outlet: Where the text goes.
        watch: Says when somebody writes; where there is none, the files are looked at again and again.
        stopping: Ends it.
        on_dropped: Told how many bytes were not forwarded so far, at most once a second.
    """

    def __init__(
        self,
        pair: TextFilePair,
        outlet: Outlet,
        watch: WriteWatch | None,
        stopping: threading.Event,
        on_dropped: Callable[[int], None],
    ) -> None:
        self._pair = pair
        self._outlet = outlet
        self._watch = watch
        self._stopping = stopping
        self._on_dropped = on_dropped
        self._last_news = 0.0
        self._hurry = False
        self._told = 0
        self._told_when = 0.0

    def run(self) -> None:
        """Go on until `stopping` is set, and pass on what is left. Whatever is raised, the caller gives fd 2 back."""
        while not self._stopping.is_set():
            written = self._wait()
            self._step(written)
        self.take()
        self.end()

    def take(self) -> None:
        """Take what is new, to be passed on."""
        taken = self._pair.take()
        self._hurry = taken >= _HURRY_BYTES
        if taken:
            self._last_news = time.monotonic()

    def end(self) -> None:
        """Pass on what was taken, as far as the reader takes it within two seconds."""
        self._outlet.flush(FLUSH_SECONDS)
        self._tell(at_once=True)

    def _wait(self) -> bool:
        """True when there may be something new to take."""
        sending = self._outlet.waiting
        if sending and not self._hurry:
            time.sleep(_SENDING_SECONDS)
        if self._watch is not None:
            untold = self._outlet.dropped_bytes != self._told
            written = self._watch.wait(
                self._outlet.descriptor if sending else None,
                hurry=self._hurry,
                seconds=_POLL_SECONDS if self._hurry else _TELL_SECONDS if untold else None,
            )
            return written or self._hurry
        quiet = time.monotonic() - self._last_news > 2.0
        seconds = _IDLE_POLL_SECONDS if quiet else _POLL_SECONDS
        self._stopping.wait(_SENDING_SECONDS if sending or self._hurry else seconds)
        return True

    def _step(self, written: bool) -> None:
        if written:
            self._pair.look_who_is_current()
            self.take()
            self._pair.take_turns()
            if not self._hurry:  # otherwise it is soon to be cleared anyway
                self._pair.cut_overgrown()
        self._outlet.send()
        self._tell()

    def _tell(self, *, at_once: bool = False) -> None:
        dropped, now = self._outlet.dropped_bytes, time.monotonic()
        if dropped != self._told and (at_once or now - self._told_when >= _TELL_SECONDS):
            self._told, self._told_when = dropped, now
            self._on_dropped(dropped)
