"""Which kernel holds what on which GPU, updated once a second from the lines of the helper process, and answered from memory.

Not here: what is kept of it with a crash (:mod:`.gpu_facts`), and whether a card is well (``diagnosis/gpu_health.py``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .gpu_cards import Card, Joiner
from .gpu_growth import GrowthSeen, GrowthWatch
from .gpu_helper import Gpus
from .gpu_history import GpuHistory
from .gpu_processes import ProcessCheck
from .monitored import MonitoredKernel

# A crash is reported with the list from before it, which is a second old, or some when the helper was being restarted.
_LOOKS_KEPT = 20
_ENDED_KEPT_SECONDS = 60.0  # of many crashes in one moment, each is handled after the other


@dataclass(frozen=True)
class Look:
    """The cards at one moment.

    Attributes:
        time: Unix seconds.
        cards: Instances follow the divided card that they are a part of.
    """

    time: float
    cards: tuple[Card, ...] = ()


class _Use:
    """One kernel on one card."""

    def __init__(self) -> None:
        self.history = GpuHistory()
        self.growth = GrowthWatch()


class GpuMap:
    """Joins the GPUs with the kernels that are watched.

    Args:
        monitored_kernels: Who is watched now.
        check: Whether a process is the one that the driver means.
    """

    def __init__(
        self,
        monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]],
        check: ProcessCheck | None = None,
    ) -> None:
        self._monitored_kernels = monitored_kernels
        self._joiner = Joiner(check or ProcessCheck())
        self._looks: deque[Look] = deque(maxlen=_LOOKS_KEPT)
        self._gpus = Gpus("starting")
        self._cards: dict[str, GpuHistory] = {}
        self._uses: dict[MonitoredKernel, dict[str, _Use]] = {}
        self._ended: dict[MonitoredKernel, float] = {}
        self._news = threading.Condition()

    def take(self, gpus: Gpus) -> None:
        """Take the newest line of the helper; in the thread that reads them."""
        look = None
        if gpus.state == "ok" and gpus.time is not None:
            monitored_kernels = self._monitored_kernels()
            look = Look(gpus.time, self._joiner.join(gpus.devices, monitored_kernels))
            self._note(look, monitored_kernels)
        with self._news:
            self._gpus = gpus
            if look is not None:
                self._looks.append(look)
            self._news.notify_all()

    def _note(self, look: Look, monitored_kernels: tuple[MonitoredKernel, ...]) -> None:
        moment = time.monotonic()
        for monitored in [w for w in self._uses if w not in monitored_kernels]:
            if moment - self._ended.setdefault(monitored, moment) > _ENDED_KEPT_SECONDS:
                del self._uses[monitored], self._ended[monitored]
        for card in look.cards:
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
                    use.growth.look(card, monitored)

    # --- for any thread ------------------------------------------------------------------------------------------------

    @property
    def monitored_kernels(self) -> tuple[MonitoredKernel, ...]:
        """Who is watched now."""
        return self._monitored_kernels()

    @property
    def gpus(self) -> Gpus:
        """The newest line of the helper."""
        return self._gpus

    @property
    def now(self) -> Look:
        """The cards as they are now; none while the driver is not read."""
        with self._news:
            is_read = self._gpus.state == "ok" and self._looks
            return self._looks[-1] if is_read else Look(0.0)

    @property
    def looks(self) -> tuple[Look, ...]:
        """The last looks, oldest first."""
        with self._news:
            return tuple(self._looks)

    def own_bytes(self, monitored: MonitoredKernel) -> int | None:
        """What a kernel and its children hold on all cards; None where that is not known for each of them."""
        cards = [c for c in self.now.cards if not c.is_divided and c.device["lost"] is not True]
        sizes = [card.own_bytes(monitored) for card in cards]
        return None if None in sizes or not sizes else sum(size or 0 for size in sizes)

    def growth(self, monitored: MonitoredKernel) -> GrowthSeen | None:
        """What was seen of memory growth; where it does not work on one card, that one's."""
        seen = [use.growth.seen for use in tuple(self._uses.get(monitored, {}).values())]
        known = [found for found in seen if found is not None]
        return min(known, key=lambda found: found.works, default=None)

    def growth_on(self, key: str, monitored: MonitoredKernel) -> GrowthSeen | None:
        """What was seen of memory growth on one card."""
        use = self._uses.get(monitored, {}).get(key)
        return use.growth.seen if use is not None else None

    def history(self, key: str, monitored: MonitoredKernel | None = None) -> GpuHistory | None:
        """The last values of a card, or of a kernel on it; None when there are none."""
        if monitored is None:
            return self._cards.get(key)
        use = self._uses.get(monitored, {}).get(key)
        return use.history if use is not None else None

    def held(self, monitored: MonitoredKernel) -> bool:
        """True for a kernel that was seen holding memory of a GPU, or says so where processes are hidden."""
        hidden = any(card.holders is None for card in self.now.cards)
        return monitored in self._uses or (hidden and bool(monitored.live.gpu_memory))

    def used_count(self, monitored: MonitoredKernel) -> int:
        """Cards on which a kernel was seen holding memory."""
        return len(self._uses.get(monitored, {}))

    def wait_for_news(self, since: float, seconds: float) -> bool:
        """Wait for a look that was taken after a moment.

        Args:
            since: Unix seconds. seconds: how long at most.

        Returns:
            False when none came.
        """
        with self._news:
            return self._news.wait_for(
                lambda: self._gpus.state != "ok" or (self._gpus.time or 0.0) > since, seconds
            )
