"""What the thread of native text does: waits until somebody writes, takes what is new, passes it on, tells what was left out."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from .linux_files import WriteWatch
from .outlet import Outlet
from .pause import Pause
from .textfile_pair import TextFilePair

_POLL_SECONDS = 0.05
_IDLE_POLL_SECONDS = 0.25
# While a reader empties its pipe: a pause makes few large writes of many small ones.
_SENDING_SECONDS = 0.002
_HURRY_BYTES = 16 * 1024
_HURRY_SECONDS = 0.001
_COALESCE_SECONDS = 0.005
_STILL_SECONDS = 0.001
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
        self._nudged = -math.inf
        self._told = 0
        self._told_when = 0.0

    def run(self) -> None:
        """Go on until `stopping` is set, and pass on what is left. Whatever is raised, the caller gives fd 2 back.

        An abort comes right after its last words. faulthandler walks the stacks of all threads then, the one that matters
        last, and dies of one whose frames are overwritten meanwhile. So this thread keeps still until nobody writes, and
        this function alone sleeps: its frame stays, and what it has called lies whole while it sleeps.
        """
        while not self._stopping.is_set():
            pause, wait = self._pause(), self._wait()
            found = wait()
            time.sleep(pause.step)
            if self._is_written(found):
                while not (self._stopping.is_set() or pause.is_over(self._nudged)):
                    time.sleep(pause.step)
                self._look()
                time.sleep(_STILL_SECONDS)
                self._tidy()
            self._outlet.send()
            self._tell()
        self.take()
        self.end()

    def nudge(self) -> None:
        """Pass on soon what was written so far, though somebody may go on writing. Costs nothing."""
        self._nudged = time.monotonic()

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

    def _wait(self) -> Callable[[], Any]:
        """What to call to wait until there is something to do."""
        sending = self._outlet.waiting
        if self._watch is None:
            quiet = time.monotonic() - self._last_news > 2.0
            idle = _IDLE_POLL_SECONDS if quiet else _POLL_SECONDS
            return partial(
                self._stopping.wait, _SENDING_SECONDS if sending or self._hurry else idle
            )
        untold = self._outlet.dropped_bytes != self._told
        return self._watch.poll(
            self._outlet.descriptor if sending else None,
            _POLL_SECONDS if self._hurry else _TELL_SECONDS if untold else None,
        )

    def _is_written(self, found: Any) -> bool:
        """True when there may be something new to take."""
        return self._watch is None or self._watch.written(found) or self._hurry

    def _pause(self) -> Pause:
        if self._watch is None:
            return Pause(self._pair, None, 0.0)
        if self._hurry:
            return Pause(self._pair, self._watch, _HURRY_SECONDS, patient=False)
        if self._outlet.waiting or self._pair.opened_anew:
            # Text that comes another way is to be told in its order.
            return Pause(self._pair, self._watch, _COALESCE_SECONDS, patient=False)
        return Pause(self._pair, self._watch)

    def _look(self) -> None:
        self._pair.look_who_is_current()
        self.take()

    def _tidy(self) -> None:
        self._pair.take_turns()
        if not self._hurry:  # otherwise it is soon to be cleared anyway
            self._pair.cut_overgrown()

    def _tell(self, *, at_once: bool = False) -> None:
        dropped, now = self._outlet.dropped_bytes, time.monotonic()
        if dropped != self._told and (at_once or now - self._told_when >= _TELL_SECONDS):
            self._told, self._told_when = dropped, now
            self._on_dropped(dropped)
