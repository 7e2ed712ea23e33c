"""Deaths before this one, as they were written into its bundle when it was kept: cause, time, whose."""

from __future__ import annotations

from dataclasses import dataclass

from .typed import dict_of, number_of, text_of


@dataclass(frozen=True)
class EarlierDeath:
    """A death that a report was kept of.

    Attributes:
        cause: As diagnosed then.
        signal: That ended it; None for none, or unknown.
        died: Unix seconds.
        kernel_id, notebook_path: Whose; None = unknown.
        count: More than one for deaths that were only counted; `died` is the last one's.
    """

    cause: str
    signal: str | None
    died: float
    kernel_id: str | None
    notebook_path: str | None
    count: int = 1


def earlier_deaths(value: object, died: float) -> list[EarlierDeath]:
    """What a bundle tells of them, newest first; whatever has the wrong type is left out."""
    found = []
    for told in value if isinstance(value, list) else ():
        death = dict_of(told)
        cause, when = text_of(death.get("cause")), number_of(death.get("died"))
        if cause is not None and when is not None and when <= died:
            whose = text_of(death.get("kernel_id")), text_of(death.get("notebook_path"))
            count = max(1, int(number_of(death.get("count")) or 1))
            found.append(EarlierDeath(cause, text_of(death.get("signal")), when, *whose, count))
    return sorted(found, key=lambda death: -death.died)
