"""Whether a GPU is well, by what the driver tells of it once a second: few notices, each with what to do.

What is part of normal work is not told: a card at its power limit under full load, errors that its memory corrected by itself, a
counter that was high before anybody looked, a fault that reports clean-up.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .catalog.gpu_health import clock_reason, most_a_minute, recovery
from .typed import number_of, text_of
from .xid import HARDWARE, SOFTWARE, xid_row

ERROR, WARNING = "error", "warning"
# Clocks are held down for a moment again and again on a sound card.
_LASTS_SECONDS = 10.0
# What comes and goes is one and the same, and stays to be read when it is over.
_GAP_SECONDS = 30.0
_KEPT_SECONDS = 120.0
_EVENT_SECONDS = 600.0
_MINUTE_SECONDS = 60.0
_FALLEN_OFF = 79  # Xid: no longer on the bus
_RESET = "End all programs on it, then: sudo nvidia-smi --gpu-reset -i {index}"
_RAISED = ("ecc_uncorrected_count", "remapped_rows_uncorrected_count")


@dataclass(frozen=True)
class Alarm:
    """One notice about a card.

    Attributes:
        severity: ``error`` or ``warning``.
        fix: What to do; None where nothing helps.
        since: Unix seconds; None where that is not known.
    """

    severity: str
    text: str
    fix: str | None
    since: float | None


@dataclass
class _Spell:
    """A state that lasts: when it began and was last seen."""

    began: float
    last: float

    @property
    def lasted(self) -> bool:
        return self.last - self.began >= _LASTS_SECONDS


class CardHealth:
    """One card, look by look."""

    def __init__(self) -> None:
        self._spells: dict[str, _Spell] = {}
        self._counts: dict[str, float] = {}
        self._risen: dict[str, tuple[float, float]] = {}
        self._replays: list[tuple[float, float]] = []
        self._replay_alarm: tuple[float, float, float] | None = None
        self._lost: float | None = None
        self._hottest = 0.0
        self.alarms: tuple[Alarm, ...] = ()

    def take(
        self,
        device: Mapping[str, Any],
        events: Sequence[Mapping[str, Any]],
        now: float,
        *,
        at_work: bool,
    ) -> None:
        """Look at a card.

        Args:
            device: As the driver tells it (``collectors/gpu.py``).
            events: The faults that it reported of this card, the newest last.
            now: Unix seconds.
            at_work: A program is known to train on it: then slow clocks matter.
        """
        lost = device.get("lost") is True
        self._lost = (self._lost or now) if lost else None
        if not lost:
            self._note(device, now, at_work=at_work)
        index = device.get("nvml_index")
        found = [
            *self._gone(events),
            *_faults(events, now, is_lost=lost),
            *self._errors(now),
            *_memory(device),
            *_wanted(device),
            *self._heat(device, now),
            *self._clocks(now),
            *self._link(now),
        ]
        self.alarms = tuple(
            Alarm(a.severity, a.text, a.fix and a.fix.replace("{index}", str(index)), a.since)
            for a in sorted(found, key=lambda a: a.severity != ERROR)
        )

    def _note(self, device: Mapping[str, Any], now: float, *, at_work: bool) -> None:
        reasons = device.get("throttle_reasons")
        if at_work:
            for name in reasons if isinstance(reasons, list) else ():
                self._spell(str(name), now)
        celsius, limit = (
            number_of(device.get(n)) for n in ("temperature_celsius", "slowdown_celsius")
        )
        if celsius is not None and limit is not None and celsius >= limit:
            if "hot" not in self._spells:
                self._hottest = 0.0
            self._hottest = max(self._hottest, celsius)
            self._spell("hot", now)
        for name, spell in tuple(self._spells.items()):
            over = now - spell.last
            if over > (_KEPT_SECONDS if spell.lasted else _GAP_SECONDS):
                del self._spells[name]
        for name in _RAISED:
            self._count(name, number_of(device.get(name)), now)
        self._count_replays(number_of(device.get("pcie_replay_count")), now)

    def _spell(self, name: str, now: float) -> None:
        spell = self._spells.get(name)
        if spell is None or (not spell.lasted and now - spell.last > _LASTS_SECONDS / 2):
            self._spells[name] = _Spell(now, now)  # moments do not add up
        else:
            spell.last = now

    def _count(self, name: str, count: float | None, now: float) -> None:
        if count is None:
            return
        before = self._counts.get(name)
        self._counts[name] = count
        if before is not None and count > before:
            rise, since = self._risen.get(name, (0.0, now))
            if now - since > _EVENT_SECONDS:
                rise, since = 0.0, now
            self._risen[name] = (rise + count - before, since)

    def _count_replays(self, count: float | None, now: float) -> None:
        if count is None:
            return
        old = self._replays
        if old and count < old[-1][1]:  # the driver was loaded anew
            old.clear()
        old.append((now, count))
        while now - old[0][0] > _MINUTE_SECONDS:
            old.pop(0)
        rise = count - old[0][1]
        # All at once may be the card waking up: it must have gone on over a good part of the minute.
        steps = sum(1 for (_, a), (_, b) in itertools.pairwise(old) if b > a)
        if rise > most_a_minute("pcie_replay_count") and steps > 1:
            since = self._replay_alarm[1] if self._replay_alarm is not None else now
            self._replay_alarm = (rise, since, now)
        elif self._replay_alarm is not None and now - self._replay_alarm[2] > _KEPT_SECONDS:
            self._replay_alarm = None

    def _gone(self, events: Sequence[Mapping[str, Any]]) -> list[Alarm]:
        if self._lost is None:
            return []
        told = any(event.get("xid") == _FALLEN_OFF for event in events)
        which = f" (Xid {_FALLEN_OFF})" if told else ""
        text = f"The card is gone: the driver cannot reach it any more{which}."
        fix = (
            "Restart the machine. If it happens again, look at its power, its cooling and its seat."
        )
        return [Alarm(ERROR, text, fix, self._lost)]

    def _errors(self, now: float) -> list[Alarm]:
        for name, what in zip(
            _RAISED, ("errors that its memory could not correct", "failing rows"), strict=True
        ):
            if name in self._risen and now - self._risen[name][1] < _EVENT_SECONDS:
                rise, since = self._risen[name]
                text = f"The card reports {rise:.0f} new {what}: what it computes may be wrong."
                return [Alarm(ERROR, text, _RESET, since)]
        return []

    def _heat(self, device: Mapping[str, Any], now: float) -> list[Alarm]:
        spell = self._spells.get("hot")
        if spell is None or not spell.lasted:
            return []
        limit, end = (number_of(device.get(n)) for n in ("slowdown_celsius", "shutdown_celsius"))
        is_now = "is" if now - spell.last < _LASTS_SECONDS else "was"
        text = f"The card {is_now} at {self._hottest:.0f} °C"
        if limit is not None:
            text += f"; it slows itself down from {limit:.0f} °C on"
        if end is not None:
            text += f" and switches itself off at {end:.0f} °C"
        fix = "Look after the cooling: dust, fans, room between cards."
        return [Alarm(WARNING, f"{text}.", fix, spell.began)]

    def _clocks(self, now: float) -> list[Alarm]:
        spells = self._spells
        known = [(clock_reason(name), spell) for name, spell in spells.items() if spell.lasted]
        told = [(reason, spell) for reason, spell in known if reason is not None and reason.told]
        if "hot" in spells and spells["hot"].lasted:
            told = [(r, s) for r, s in told if "Thermal" not in r.name and r.name != "HwSlowdown"]
        # The card's own slowdown is told beside its reason, where it has one.
        if len(told) > 1:
            told = [(r, s) for r, s in told if r.name != "HwSlowdown"]
        for reason, spell in told[:1]:
            runs = "runs" if now - spell.last < _LASTS_SECONDS else "ran"
            text = f"The card {runs} slower than it could: {reason.says}."
            return [Alarm(WARNING, text, reason.fix, spell.began)]
        return []

    def _link(self, now: float) -> list[Alarm]:
        if self._replay_alarm is None:
            return []
        rise, since, _ = self._replay_alarm
        text = f"The card's link to the machine repeated {rise:.0f} transfers within a minute; a sound one needs less than {most_a_minute('pcie_replay_count')}."
        return [
            Alarm(WARNING, text, "Have the card's seat and its cables or riser looked at.", since)
        ]


def _faults(events: Sequence[Mapping[str, Any]], now: float, *, is_lost: bool) -> list[Alarm]:
    """One notice per number, the newest kept; that a lost card fell off the bus is told once."""
    found: dict[int, Alarm] = {}
    for event in events:
        when, xid = number_of(event.get("time")), number_of(event.get("xid"))
        if when is None or xid is None or now - when > _EVENT_SECONDS:
            continue
        if is_lost and xid == _FALLEN_OFF:
            continue
        alarm = _fault(int(xid), when)
        if alarm is not None:
            found[int(xid)] = alarm
    return list(found.values())


def _fault(xid: int, when: float) -> Alarm | None:
    row = xid_row(xid)
    if row is None:
        text = f"The driver reported a fault of the card that is not in our table: Xid {xid}."
        return Alarm(WARNING, text, "https://docs.nvidia.com/deploy/xid-errors/", when)
    blame, fix = row["blame"], text_of(row.get("advice"))
    # What NVIDIA says needs no action is no reason to worry anybody; an end of a program is told by its report.
    if blame == "cleanup" or (blame != SOFTWARE and row.get("action") == "IGNORE"):
        return None
    meaning = str(row["meaning"]).rstrip(".")
    if blame == HARDWARE:
        return Alarm(ERROR, f"The card reported a fault (Xid {xid}): {meaning}.", fix, when)
    if blame == SOFTWARE:
        text = f"A program on the card went wrong (Xid {xid}): {meaning}."
        return Alarm(WARNING, text, fix, when)
    return Alarm(WARNING, f"The driver reported Xid {xid}: {meaning}.", fix, when)


def _memory(device: Mapping[str, Any]) -> list[Alarm]:
    if device.get("remapped_rows_failed") is True:
        text = "The card has no spare rows left for failing memory."
        return [Alarm(ERROR, text, "Have the card replaced.", None)]
    if device.get("remapped_rows_pending") is True or device.get("retired_pages_pending") is True:
        text = "Failing memory of the card is to be set aside; that takes a reset."
        return [Alarm(WARNING, text, _RESET, None)]
    return []


def _wanted(device: Mapping[str, Any]) -> list[Alarm]:
    name = text_of(device.get("recovery_action"))
    if name is None:
        return []
    known = recovery(name)
    if known is None:
        return [
            Alarm(WARNING, f"The driver asks for something to be done: {name[:60]}.", None, None)
        ]
    if known.severity == "none":
        return []
    return [Alarm(known.severity, f"The driver asks for {known.does}.", known.fix, None)]
