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
from .witness import Witness

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
        witnesses: Who is watched now.
        check: Whether a process is the one that the driver means.
    """

    def __init__(
        self, witnesses: Callable[[], tuple[Witness, ...]], check: ProcessCheck | None = None
    ) -> None:
        self._witnesses = witnesses
        self._joiner = Joiner(check or ProcessCheck())
        self._looks: deque[Look] = deque(maxlen=_LOOKS_KEPT)
        self._gpus = Gpus("starting")
        self._cards: dict[str, GpuHistory] = {}
        self._uses: dict[Witness, dict[str, _Use]] = {}
        self._ended: dict[Witness, float] = {}
        self._news = threading.Condition()

    def take(self, gpus: Gpus) -> None:
        """Take the newest line of the helper; in the thread that reads them."""
        look = None
        if gpus.state == "ok" and gpus.time is not None:
            witnesses = self._witnesses()
            look = Look(gpus.time, self._joiner.join(gpus.devices, witnesses))
            self._note(look, witnesses)
        with self._news:
            self._gpus = gpus
            if look is not None:
                self._looks.append(look)
            self._news.notify_all()

    def _note(self, look: Look, witnesses: tuple[Witness, ...]) -> None:
        moment = time.monotonic()
        for witness in [w for w in self._uses if w not in witnesses]:
            if moment - self._ended.setdefault(witness, moment) > _ENDED_KEPT_SECONDS:
                del self._uses[witness], self._ended[witness]
        for card in look.cards:
            used, celsius = (
                card.device["memory_used_bytes"],
                card.device["temperature_celsius"],
            )
            self._cards.setdefault(card.key, GpuHistory()).add(moment, None, used, celsius)
            holders = {holder.witness for holder in card.holders or ()}
            for witness in witnesses:
                if witness in holders or card.key in self._uses.get(witness, {}):
                    use = self._uses.setdefault(witness, {}).setdefault(card.key, _Use())
                    use.history.add(moment, card.own_bytes(witness), used, celsius)
                    use.growth.look(card, witness)

    # --- for any thread ------------------------------------------------------------------------------------------------

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Who is watched now."""
        return self._witnesses()

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

    def own_bytes(self, witness: Witness) -> int | None:
        """What a kernel and its children hold on all cards; None where that is not known for each of them."""
        cards = [c for c in self.now.cards if not c.is_divided and c.device["lost"] is not True]
        sizes = [card.own_bytes(witness) for card in cards]
        return None if None in sizes or not sizes else sum(size or 0 for size in sizes)

    def growth(self, witness: Witness) -> GrowthSeen | None:
        """What was seen of memory growth; where it does not work on one card, that one's."""
        seen = [use.growth.seen for use in tuple(self._uses.get(witness, {}).values())]
        known = [found for found in seen if found is not None]
        return min(known, key=lambda found: found.works, default=None)

    def growth_on(self, key: str, witness: Witness) -> GrowthSeen | None:
        """What was seen of memory growth on one card."""
        use = self._uses.get(witness, {}).get(key)
        return use.growth.seen if use is not None else None

    def history(self, key: str, witness: Witness | None = None) -> GpuHistory | None:
        """The last values of a card, or of a kernel on it; None when there are none."""
        if witness is None:
            return self._cards.get(key)
        use = self._uses.get(witness, {}).get(key)
        return use.history if use is not None else None

    def held(self, witness: Witness) -> bool:
        """True for a kernel that was seen holding memory of a GPU, or says so where processes are hidden."""
        hidden = any(card.holders is None for card in self.now.cards)
        return witness in self._uses or (hidden and bool(witness.live.gpu_memory))

    def used_count(self, witness: Witness) -> int:
        """Cards on which a kernel was seen holding memory."""
        return len(self._uses.get(witness, {}))

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
