"""Health of a GPU, from one reading of the driver per second: few notices, each with advice.

Normal operation is not reported: a card at its power limit under full load, memory errors that the card corrected itself,
a counter that was already high at the first reading, a fault that reports clean-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..decode import list_of, number_of, text_of
from .xid import HARDWARE, SOFTWARE, xid_row

ERROR, WARNING = "error", "warning"
# A healthy card also lowers its clocks for short moments.
_LASTS_SECONDS, _GAP_SECONDS = 10.0, 5.0
_KEPT_SECONDS = 120.0
_EVENT_SECONDS = 600.0
_RESET = "Stop all programs on the card, then run: sudo nvidia-smi --gpu-reset -i {index}"
_COOLING = "Check the cooling: dust, fans, space between cards."
# Reasons for lowered clocks, the most specific first, and advice; the driver's other reasons are part of normal operation.
# Source: nvml.h, nvmlClocksEventReason...
_SLOW = {
    "HwThermalSlowdown": (
        "it is too hot and reduces its clocks by half or more",
        _COOLING,
    ),
    "HwPowerBrakeSlowdown": (
        "an external power brake, for example of the power supply, reduces its clocks by half or more",
        "Check the power supply and its cables.",
    ),
    "SwThermalSlowdown": (
        "the driver reduces its clocks to keep the temperature below the limit",
        _COOLING,
    ),
    "HwSlowdown": (
        "it reduces its clocks by half or more because of heat, power, or an external power brake",
        None,
    ),
}
_COUNTS = {
    "ecc_uncorrected_count": "uncorrectable memory errors",
    "remapped_rows_uncorrected_count": "failing memory rows",
}


@dataclass(frozen=True)
class Alarm:
    """One notice about a card.

    Attributes:
        severity: ``error`` or ``warning``.
        fix: What to do; None if nothing helps.
        since: Unix seconds; None if not known.
    """

    severity: str
    text: str
    fix: str | None
    since: float | None


@dataclass
class _Slow:
    """Lowered clocks: since when, when last observed, and why."""

    began: float
    last: float
    reason: str

    @property
    def lasted(self) -> bool:
        return self.last - self.began >= _LASTS_SECONDS


class CardHealth:
    """Health of one card, updated with each reading."""

    def __init__(self) -> None:
        self._slow: _Slow | None = None
        self._counts: dict[str, float] = {}
        self._risen: dict[str, tuple[float, float]] = {}  # (total rise, time of the last rise)
        self._lost: float | None = None
        self.alarms: tuple[Alarm, ...] = ()

    def take(
        self,
        device: Mapping[str, Any],
        events: Sequence[Mapping[str, Any]],
        now: float,
        *,
        at_work: bool,
    ) -> None:
        """Process the next reading.

        Args:
            device: The reading of the driver (``collectors/gpu_cards.py``).
            events: Faults of this card that the driver reported, newest last.
            now: Unix seconds.
            at_work: True if a program is known to train on the card: only then do lowered clocks matter.
        """
        lost = device.get("lost") is True
        self._lost = (self._lost or now) if lost else None
        if at_work and not lost:
            self._note_clocks(device.get("throttle_reasons"), now)
        found = [
            *self._gone(),
            *_faults(events, now),
            *self._errors(device, now),
            *_memory(device),
            *self._clocks(now),
        ]
        index = str(device.get("nvml_index"))
        self.alarms = tuple(
            replace(alarm, fix=alarm.fix and alarm.fix.replace("{index}", index))
            for alarm in sorted(found, key=lambda alarm: alarm.severity != ERROR)
        )

    def _note_clocks(self, reasons: object, now: float) -> None:
        reason = next((name for name in _SLOW if name in list_of(reasons)), None)
        if reason is None:
            return
        slow = self._slow
        # Separate short moments are not added up.
        if slow is None or now - slow.last > (_KEPT_SECONDS if slow.lasted else _GAP_SECONDS):
            self._slow = _Slow(now, now, reason)
        else:
            slow.last, slow.reason = now, reason

    def _clocks(self, now: float) -> list[Alarm]:
        slow = self._slow
        if slow is None or not slow.lasted or now - slow.last > _KEPT_SECONDS:
            return []
        says, fix = _SLOW[slow.reason]
        runs = "runs" if now - slow.last < _LASTS_SECONDS else "ran"
        return [Alarm(WARNING, f"The card {runs} below full speed: {says}.", fix, slow.began)]

    def _gone(self) -> list[Alarm]:
        if self._lost is None:
            return []
        text = "The card is lost: the driver can no longer reach it."
        fix = "Restart the machine. If it happens again, check the card's power supply, cooling and slot."
        return [Alarm(ERROR, text, fix, self._lost)]

    def _errors(self, device: Mapping[str, Any], now: float) -> list[Alarm]:
        found = []
        for name, what in _COUNTS.items():
            count = number_of(device.get(name))
            if count is not None:
                rise = count - self._counts.get(name, count)
                self._counts[name] = count
                if rise > 0:
                    self._risen[name] = (self._risen.get(name, (0.0, 0.0))[0] + rise, now)
            risen, when = self._risen.get(name, (0.0, 0.0))
            if risen and now - when < _EVENT_SECONDS:
                text = f"The card reports {risen:.0f} new {what}: its results may be wrong."
                found.append(Alarm(ERROR, text, _RESET, when))
        return found


def _faults(events: Sequence[Mapping[str, Any]], now: float) -> list[Alarm]:
    """One notice per Xid number: the newest fault."""
    found: dict[int, Alarm] = {}
    for event in events:
        when, xid = number_of(event.get("time")), number_of(event.get("xid"))
        if when is None or xid is None or now - when > _EVENT_SECONDS:
            continue
        if (alarm := _fault(int(xid), when)) is not None:
            found[int(xid)] = alarm
    return list(found.values())


def _fault(xid: int, when: float) -> Alarm | None:
    row = xid_row(xid)
    if row is None:
        text = f"The driver reported a fault of the card that tfguard does not know: Xid {xid}."
        return Alarm(WARNING, text, "https://docs.nvidia.com/deploy/xid-errors/", when)
    blame, fix = row["blame"], text_of(row.get("advice"))
    # A fault that needs no action according to NVIDIA is not shown. The end of a program has its own report.
    if blame == "cleanup" or (blame != SOFTWARE and row.get("action") == "IGNORE"):
        return None
    meaning = str(row["meaning"]).rstrip(".")
    if blame == HARDWARE:
        return Alarm(ERROR, f"The card reported a fault (Xid {xid}): {meaning}.", fix, when)
    if blame == SOFTWARE:
        text = f"A program on the card failed (Xid {xid}): {meaning}."
        return Alarm(WARNING, text, fix, when)
    return Alarm(WARNING, f"The driver reported Xid {xid}: {meaning}.", fix, when)


def _memory(device: Mapping[str, Any]) -> list[Alarm]:
    if device.get("remapped_rows_failed") is True:
        text = "The card has no spare rows left for failing memory."
        return [Alarm(ERROR, text, "Have the card replaced.", None)]
    if device.get("remapped_rows_pending") is True or device.get("retired_pages_pending") is True:
        text = "The card must retire failing memory, which needs a reset."
        return [Alarm(WARNING, text, _RESET, None)]
    return []
