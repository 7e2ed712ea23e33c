"""Takes the samples of all kernels, in a thread of its own that does nothing else and so is never late.

Rounds follow each other on a fixed beat: that of busy kernels while there is one, else four a second, which notices a
kernel that turns busy. A kernel is sampled in the last round before its next sample would be late.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from ..collectors.host import HostCollector
from ..errors import SourceUnavailable
from ..shield import note_problem, shielded
from .process_witness import ProcessWitness

# Multiples of it, without the whole part, spread evenly between 0 and 1.
GOLDEN = (math.sqrt(5) - 1) / 2
_NOTICE_BUSY_SECONDS = 0.25
_MANY, _IDLE_TURNS = 100, 5
_LATE_FRACTION = 0.05  # of a kernel's period: how late a sample may be planned


class Sampling:
    """The thread.

    Args:
        witnesses: Who is watched now.
        on_gone: Called when a process has ended and nobody said so.
        busy_seconds, idle_seconds: Between two samples of a kernel.
    """

    def __init__(
        self,
        witnesses: Callable[[], tuple[ProcessWitness, ...]],
        on_gone: Callable[[ProcessWitness], None],
        busy_seconds: float,
        idle_seconds: float,
    ) -> None:
        self._witnesses = witnesses
        self._on_gone = on_gone
        self._busy_seconds = busy_seconds
        self._idle_seconds = idle_seconds
        self._busy = 1
        self._round = 0
        self._turns = 0
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tfguard-sampler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Say that there is a new kernel."""
        self._wake.set()

    def _run(self) -> None:
        try:
            host = HostCollector()
        except SourceUnavailable as bad:
            note_problem("sampling kernels", bad)
            return
        planned = time.monotonic()
        while not self._stopping:
            pause = max(0.0, planned - time.monotonic()) if self._witnesses() else None
            self._wake.wait(pause)
            self._wake.clear()
            now = time.monotonic()
            moment = now
            if now >= planned:
                moment = planned if now - planned < self._beat_seconds else now
                planned = moment + self._beat_seconds
            with shielded("sampling kernels"):
                self._sample_due(host, moment, planned)
            planned = min(planned, moment + self._beat_seconds)  # a kernel has just turned busy
        host.close()

    @property
    def _beat_seconds(self) -> float:
        if self._busy:
            return self._busy_seconds
        return min(self._idle_seconds, _NOTICE_BUSY_SECONDS)

    def _sample_due(self, host: HostCollector, moment: float, following: float) -> None:
        """Sample whoever would be late in the following round."""
        self._round += 1
        witnesses = self._witnesses()
        self._ask_who_is_busy(witnesses, moment)
        # Asked of a thousand kernels ten times a second.
        busy_late = following - _LATE_FRACTION * self._busy_seconds
        idle_late = following - _LATE_FRACTION * self._idle_seconds
        due = [w for w in witnesses if w.due < (busy_late if w.is_busy else idle_late)]
        if not due:
            return
        try:
            machine = host.collect()
        except SourceUnavailable:
            machine = {}
        for witness in due:
            first = not witness.due
            witness.due = moment + self._period_seconds(witness)
            if first and not witness.is_busy:
                self._spread(witness, moment)
            if not witness.sample(self._round, machine) and not witness.handle.is_running():
                self._on_gone(witness)

    def _ask_who_is_busy(self, witnesses: tuple[ProcessWitness, ...], moment: float) -> None:
        # Of many idle kernels a fifth is asked in each round while the beat is fast.
        step = _IDLE_TURNS if self._busy and len(witnesses) > _MANY else 1
        asked = {*witnesses[self._round % step :: step], *(w for w in witnesses if w.is_busy)}
        busy_now = 0
        for witness in asked:
            busy = witness.kernel.is_busy() or witness.live.runs_cell
            busy_now += busy
            if busy != witness.is_busy:
                witness.is_busy = busy
                if busy:
                    witness.due = min(witness.due, moment)
                    witness.look_due = 0.0
                elif witness.due:
                    self._spread(witness, moment)
        self._busy = busy_now

    def _spread(self, witness: ProcessWitness, moment: float) -> None:
        """Give an idle kernel its turn within the period, so that a thousand do not have theirs in the same round."""
        self._turns += 1
        witness.due = moment + self._idle_seconds * (self._turns * GOLDEN % 1)

    def _period_seconds(self, witness: ProcessWitness) -> float:
        return self._busy_seconds if witness.is_busy else self._idle_seconds

    def stop(self) -> None:
        """End."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2)
