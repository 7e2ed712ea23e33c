"""GPU memory per kernel and card, kept in memory and updated once a second from the output of the helper process.

Not here: what is recorded with a crash (:mod:`.gpu_facts`), and the health of a card (``diagnosis/gpu_health.py``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..monitored import MonitoredKernel
from .gpu_cards import Card, Joiner
from .gpu_growth import GrowthSeen, GrowthWatch
from .gpu_helper import Gpus
from .gpu_history import GpuHistory
from .gpu_processes import ProcessCheck

# A crash report uses the list from before the crash: a second old, or several while the helper was restarting.
_SNAPSHOTS_KEPT = 20
_ENDED_KEPT_SECONDS = 60.0  # many simultaneous crashes are handled one after the other


@dataclass(frozen=True)
class GpuSnapshot:
    """Snapshot of the cards.

    Attributes:
        time: Unix seconds.
        cards: MIG instances follow the divided card that they are part of.
    """

    time: float
    cards: tuple[Card, ...] = ()


class _Use:
    """One kernel on one card."""

    def __init__(self) -> None:
        self.history = GpuHistory()
        self.growth = GrowthWatch()


class GpuMap:
    """Joins the GPUs with the tracked kernels.

    Args:
        monitored_kernels: Returns the kernels that are tracked now.
        check: Checks whether a process id is the process that the driver means.
    """

    def __init__(
        self,
        monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]],
        check: ProcessCheck | None = None,
    ) -> None:
        self._monitored_kernels = monitored_kernels
        self._joiner = Joiner(check or ProcessCheck())
        self._snapshots: deque[GpuSnapshot] = deque(maxlen=_SNAPSHOTS_KEPT)
        self._gpus = Gpus("starting")
        self._cards: dict[str, GpuHistory] = {}
        self._uses: dict[MonitoredKernel, dict[str, _Use]] = {}
        self._ended: dict[MonitoredKernel, float] = {}
        self._news = threading.Condition()

    def take(self, gpus: Gpus) -> None:
        """Process the newest state from the helper, in the thread that reads its lines."""
        snapshot = None
        if gpus.state == "ok" and gpus.time is not None:
            monitored_kernels = self._monitored_kernels()
            snapshot = GpuSnapshot(gpus.time, self._joiner.join(gpus.devices, monitored_kernels))
            self._note(snapshot, monitored_kernels)
        with self._news:
            self._gpus = gpus
            if snapshot is not None:
                self._snapshots.append(snapshot)
            self._news.notify_all()

    def _note(self, snapshot: GpuSnapshot, monitored_kernels: tuple[MonitoredKernel, ...]) -> None:
        moment = time.monotonic()
        for monitored in [one for one in self._uses if one not in monitored_kernels]:
            if moment - self._ended.setdefault(monitored, moment) > _ENDED_KEPT_SECONDS:
                del self._uses[monitored], self._ended[monitored]
        for card in snapshot.cards:
            used, celsius = (
                card.device["memory_used_bytes"],
                card.device["temperature_celsius"],
            )
            self._cards.setdefault(card.key, GpuHistory()).add(moment, None, used, celsius)
            holders = {holder.monitored for holder in card.holders or ()}
            for monitored in monitored_kernels:
                if monitored in holders or card.key in self._uses.get(monitored, {}):
                    use = self._uses.setdefault(monitored, {}).setdefault(card.key, _Use())
                    use.history.add(moment, card.own_bytes(monitored), used, celsius)
                    use.growth.poll(card, monitored)

    # --- for any thread ------------------------------------------------------------------------------------------------

    @property
    def monitored_kernels(self) -> tuple[MonitoredKernel, ...]:
        """The kernels that are tracked now."""
        return self._monitored_kernels()

    @property
    def gpus(self) -> Gpus:
        """The newest state from the helper."""
        return self._gpus

    @property
    def now(self) -> GpuSnapshot:
        """The current cards; empty while the driver is not read."""
        with self._news:
            is_read = self._gpus.state == "ok" and self._snapshots
            return self._snapshots[-1] if is_read else GpuSnapshot(0.0)

    @property
    def snapshots(self) -> tuple[GpuSnapshot, ...]:
        """The last snapshots, oldest first."""
        with self._news:
            return tuple(self._snapshots)

    def own_bytes(self, monitored: MonitoredKernel) -> int | None:
        """Bytes that a kernel and its children hold on all cards; None unless known for every card."""
        cards = [c for c in self.now.cards if not c.is_divided and c.device["lost"] is not True]
        sizes = [card.own_bytes(monitored) for card in cards]
        return None if None in sizes or not sizes else sum(size or 0 for size in sizes)

    def growth(self, monitored: MonitoredKernel) -> GrowthSeen | None:
        """Observed memory growth; if it is not in effect on one card, the result of that card."""
        seen = [use.growth.seen for use in tuple(self._uses.get(monitored, {}).values())]
        known = [found for found in seen if found is not None]
        return min(known, key=lambda found: found.works, default=None)

    def growth_on(self, key: str, monitored: MonitoredKernel) -> GrowthSeen | None:
        """Observed memory growth on one card."""
        use = self._uses.get(monitored, {}).get(key)
        return use.growth.seen if use is not None else None

    def history(self, key: str, monitored: MonitoredKernel | None = None) -> GpuHistory | None:
        """History of a card, or of a kernel on it; None if there is none."""
        if monitored is None:
            return self._cards.get(key)
        use = self._uses.get(monitored, {}).get(key)
        return use.history if use is not None else None

    def held(self, monitored: MonitoredKernel) -> bool:
        """True if a kernel was seen holding GPU memory, or reports so itself where processes are hidden."""
        hidden = any(card.holders is None for card in self.now.cards)
        return monitored in self._uses or (hidden and bool(monitored.live.gpu_memory))

    def used_count(self, monitored: MonitoredKernel) -> int:
        """Number of cards on which a kernel was seen holding memory."""
        return len(self._uses.get(monitored, {}))

    def wait_for_news(self, since: float, seconds: float) -> bool:
        """Wait for a snapshot taken after a given time, or until the driver is no longer read.

        Args:
            since: Unix seconds. seconds: timeout.

        Returns:
            False after the timeout.
        """
        with self._news:
            return self._news.wait_for(
                lambda: self._gpus.state != "ok" or (self._gpus.time or 0.0) > since, seconds
            )
