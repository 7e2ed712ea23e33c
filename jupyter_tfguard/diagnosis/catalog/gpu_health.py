"""What people are told of a card's clocks, of what the driver wants done with it, and of its error counts."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from . import table

_TABLE = "gpu_health"


@dataclass(frozen=True)
class ClockReason:
    """Why a card's clocks are held down.

    Attributes:
        says: The same, to go on after "The card runs slower than it could: ".
        told: False for what is part of normal work.
        fix: What to do; None where nothing helps.
    """

    name: str
    says: str
    told: bool
    fix: str | None


@dataclass(frozen=True)
class Recovery:
    """What the driver wants done with a card.

    Attributes:
        does: To go on after "The driver asks for ".
        severity: Of the notice; ``none`` for nothing to do.
        fix: With ``{index}`` for the card's number.
    """

    name: str
    does: str
    severity: str
    fix: str | None


def clock_reason(name: str) -> ClockReason | None:
    """A reason by NVML's name; None for one that is not in the table."""
    return _reasons().get(name)


def recovery(name: str) -> Recovery | None:
    """An action by its name; None for one that is not in the table."""
    return _actions().get(name.strip().lower().replace("_", " "))


def most_a_minute(name: str) -> int:
    """Errors of a kind in a minute that are not too many."""
    return next(int(row["per_minute"]) for row in table(_TABLE)["limit"] if row["name"] == name)


@functools.cache
def _reasons() -> dict[str, ClockReason]:
    return {
        row["name"]: ClockReason(
            row["name"], row["says"], row["severity"] != "none", row.get("fix")
        )
        for row in table(_TABLE)["clock_reason"]
    }


@functools.cache
def _actions() -> dict[str, Recovery]:
    return {
        row["name"].lower(): Recovery(row["name"], row["does"], row["severity"], row.get("fix"))
        for row in table(_TABLE)["recovery_action"]
    }
