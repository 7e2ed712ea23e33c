"""Who holds what on which GPU, kept up to date from what the helper process tells, and answered from memory.

Everything is worked out once a second in the thread that reads the helper's lines; whoever asks gets what is known. Not here:
what a death leaves of it (:mod:`.gpu_facts`), and whether a card is well (``diagnosis/gpu_health.py``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..bus_id import same_card
from .gpu_cards import Card, Joiner
from .gpu_growth import GrowthSeen, GrowthWatch
from .gpu_helper import Gpus
from .gpu_history import GpuHistory
from .gpu_processes import ProcessCheck
from .witness import Witness

# A death is told with the list from before it, which is a second old, or some when the helper was being restarted.
_LOOKS_KEPT = 20
_ENDED_KEPT_SECONDS = 60.0  # of many deaths in one moment, each is told after the other


@dataclass(frozen=True)
class Look:
    """The cards at one moment.

    Attributes:
        time: Unix seconds.
        cards: Instances of a divided card stand after it.
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
        self._now = Look(0.0)
        self._gpus = Gpus("starting")
        self._cards: dict[str, GpuHistory] = {}
        self._uses: dict[Witness, dict[str, _Use]] = {}
        self._ended: dict[Witness, float] = {}
        self._news = threading.Condition()

    # --- in the thread that reads the helper's lines -----------------------------------------------------------------

    def take(self, gpus: Gpus) -> None:
        """Take what the helper told last."""
        witnesses = self._witnesses()
        when = gpus.time if gpus.time is not None else time.time()
        look = Look(when)
        if gpus.state == "ok":
            look = Look(when, self._joiner.join(gpus.devices, witnesses))
            self._note(look, witnesses)
        with self._news:
            self._gpus, self._now = gpus, look
            if gpus.state == "ok":
                if self._looks and self._looks[-1].time == look.time:
                    self._looks.pop()  # the same look, told with an event
                self._looks.append(look)
            self._news.notify_all()

    def _note(self, look: Look, witnesses: tuple[Witness, ...]) -> None:
        moment = time.monotonic()
        self._forget_ended(set(witnesses), moment)
        for card in look.cards:
            device = card.device
            used, celsius = device.get("memory_used_bytes"), device.get("temperature_celsius")
            self._cards.setdefault(card.key, GpuHistory()).add(moment, None, used, celsius)
            holders = {holder.witness for holder in card.holders or ()}
            for witness in witnesses:
                uses = self._uses.get(witness)
                if witness not in holders and (uses is None or card.key not in uses):
                    continue
                own = card.own_bytes(witness)
                use = self._uses.setdefault(witness, {}).setdefault(card.key, _Use())
                use.history.add(moment, own, used, celsius)
                _look_at_growth(use.growth, own, card, witness)

    def _forget_ended(self, living: set[Witness], moment: float) -> None:
        for witness in [w for w in self._uses if w not in living]:
            if moment - self._ended.setdefault(witness, moment) > _ENDED_KEPT_SECONDS:
                del self._uses[witness], self._ended[witness]

    # --- for any thread ------------------------------------------------------------------------------------------------

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Who is watched now."""
        return self._witnesses()

    @property
    def gpus(self) -> Gpus:
        """What the helper told last."""
        return self._gpus

    @property
    def now(self) -> Look:
        """The cards as they are now; none while the driver is not read."""
        return self._now

    @property
    def looks(self) -> tuple[Look, ...]:
        """The last looks, oldest first."""
        with self._news:
            return tuple(self._looks)

    def own_bytes(self, witness: Witness) -> int | None:
        """What a kernel and its children hold on all cards; None where that is not known for each of them."""
        total = 0
        divided = divided_cards(self._now)
        cards = [
            c for c in self._now.cards if c.key not in divided and c.device.get("lost") is not True
        ]
        for card in cards:
            own = card.own_bytes(witness)
            if own is None:
                return None
            total += own
        return total if cards else None

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
        """True for a kernel that was seen holding memory of a GPU, or says so where nobody can be seen."""
        if witness in self._uses:
            return True
        hidden = any(card.holders is None for card in self._now.cards)
        return hidden and bool(witness.live.gpu_memory)

    def used_count(self, witness: Witness) -> int:
        """Cards on which a kernel was seen holding memory."""
        return len(self._uses.get(witness, {}))

    def wait_for_news(self, since: float, seconds: float) -> bool:
        """Wait for a look that was taken after a moment.

        Args:
            since: Unix seconds. seconds: how long at most.

        Returns:
            False when none came, or none is to be expected.
        """
        with self._news:
            return self._news.wait_for(
                lambda: self._gpus.state != "ok" or self._now.time > since, seconds
            )


def divided_cards(look: Look) -> frozenset[str]:
    """Keys of the cards whose memory is divided into instances, which are told beside them."""
    instances = {
        card.device.get("nvml_index")
        for card in look.cards
        if card.device.get("mig_index") is not None
    }
    return frozenset(
        card.key
        for card in look.cards
        if card.device.get("mig_index") is None and card.device.get("nvml_index") in instances
    )


def tensorflow_on(card: Card, witness: Witness) -> Mapping[str, Any] | None:
    """What TensorFlow in a kernel says of this card; None when it says nothing, or may mean another instance of it."""
    bus_id = card.device.get("bus_id")
    found = [told for told in witness.live.gpu_memory if same_card(told.get("bus_id"), bus_id)]
    return found[0] if len(found) == 1 else None


def _look_at_growth(growth: GrowthWatch, own: int | None, card: Card, witness: Witness) -> None:
    device, told = card.device, tensorflow_on(card, witness)
    total, used = device.get("memory_total_bytes"), device.get("memory_used_bytes")
    free = device.get("memory_free_bytes")
    if free is None and total is not None and used is not None:
        free = total - used
    training = witness.live.training or {}
    growth.look(
        own,
        free,
        total,
        limit=told.get("limit_bytes") if told else None,
        peak=told.get("peak_bytes") if told else None,
        works=bool(training.get("step")),
    )
