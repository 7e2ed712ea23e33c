"""What is read rarely and may take long, in a thread of its own: counters of groups, children, peak and swap.

A look at a group is made once a second, at a busy kernel or one with children once a second, at any other every twenty
seconds. All looks together take a fiftieth of a core for groups and one for children at most: with more to read they
become rarer, those at groups every five seconds at the least.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..collectors.host import HostCollector
from ..collectors.process import CHILDREN_COST_FRACTION
from ..errors import SourceUnavailable
from ..shield import note_problem, shielded
from .counters import GroupReader
from .process_witness import ProcessWitness
from .sampling import GOLDEN

_LOOK_SECONDS = 1.0
_IDLE_LOOK_SECONDS = 20.0
_SHORTEST_PAUSE_SECONDS = 0.25
# A look while the machine runs out of memory can take a second of processor time, and none is more needed than the next.
_LONGEST_PAUSE_SECONDS = 5.0
_GROUPS_FRACTION, _CHILDREN_FRACTION = 0.02, 0.01  # of a core


class Looks:
    """The thread.

    Args:
        witnesses: Who is watched now.
        after_look: Called in the thread with each kernel after its group was looked at.
    """

    def __init__(
        self,
        witnesses: Callable[[], tuple[ProcessWitness, ...]],
        after_look: Callable[[ProcessWitness], None],
    ) -> None:
        self._witnesses = witnesses
        self._after_look = after_look
        self._groups_due = 0.0
        self._turns = 0
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tfguard-looks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Say that there is a new kernel, which wants its first look soon."""
        self._wake.set()

    def _run(self) -> None:
        try:
            host = HostCollector()
        except SourceUnavailable as bad:
            note_problem("looking at kernels", bad)
            return
        while not self._stopping:
            self._wake.wait(self._pause_seconds())
            self._wake.clear()
            with shielded("looking at kernels"):
                self._look(host)
        host.close()

    def _pause_seconds(self) -> float | None:
        witnesses = self._witnesses()
        if not witnesses:
            return None
        following = min(self._groups_due, min(witness.look_due for witness in witnesses))
        pause = following - time.monotonic()
        # A kernel that turns busy is due at once.
        return min(max(pause, _SHORTEST_PAUSE_SECONDS), _LOOK_SECONDS)

    def _look(self, host: HostCollector) -> None:
        now = time.monotonic()
        witnesses = self._witnesses()
        often = sum(1 for witness in witnesses if witness.is_busy or witness.children)
        fraction = min(CHILDREN_COST_FRACTION, _CHILDREN_FRACTION / max(1, often))
        for witness in witnesses:
            if witness.look_due <= now and not self._stopping:
                first = not witness.look_due
                witness.look(fraction)
                witness.look_due = now + self._period_seconds(witness, first)
        self._look_at_groups(host, witnesses, now)

    def _period_seconds(self, witness: ProcessWitness, first: bool) -> float:
        if witness.is_busy or witness.children:
            return _LOOK_SECONDS
        if first:  # not all in the same round from then on
            self._turns += 1
            return _IDLE_LOOK_SECONDS * (self._turns * GOLDEN % 1)
        return _IDLE_LOOK_SECONDS

    def _look_at_groups(
        self, host: HostCollector, witnesses: tuple[ProcessWitness, ...], now: float
    ) -> None:
        due = {witness.group for witness in witnesses}
        if now < self._groups_due:
            due = {group for group in due if group.counters is None}
        if not due:
            return
        began = time.thread_time()
        try:
            machine = host.collect()
        except SourceUnavailable:
            machine = {}
        reader = GroupReader()
        for group in due:
            group.look(reader, machine)
        if now >= self._groups_due:
            cost = time.thread_time() - began
            pause = min(max(_LOOK_SECONDS, cost / _GROUPS_FRACTION), _LONGEST_PAUSE_SECONDS)
            self._groups_due = now + pause
        for witness in witnesses:
            witness.look_for_kills()
            self._after_look(witness)

    def stop(self) -> None:
        """End."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2)
