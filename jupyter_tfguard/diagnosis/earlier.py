"""Deaths before this one, as they were written into its bundle when it was kept: cause, time, whose."""

from __future__ import annotations

from dataclasses import dataclass

from .observed import Observed
from .typed import dict_of, number_of, text_of


@dataclass(frozen=True)
class EarlierDeath:
    """A death that a report was kept of.

    Attributes:
        cause: As diagnosed then.
        died: Unix seconds.
        kernel_id, notebook_path: Whose; None = unknown.
    """

    cause: str
    died: float
    kernel_id: str | None
    notebook_path: str | None


def earlier_deaths(value: object, died: float) -> list[EarlierDeath]:
    """What a bundle tells of them, newest first; whatever has the wrong type is left out."""
    found = []
    for told in value if isinstance(value, list) else ():
        death = dict_of(told)
        cause, when = text_of(death.get("cause")), number_of(death.get("died"))
        if cause is not None and when is not None and when <= died:
            whose = text_of(death.get("kernel_id")), text_of(death.get("notebook_path"))
            found.append(EarlierDeath(cause, when, *whose))
    return sorted(found, key=lambda death: -death.died)


def same_notebook(seen: Observed, death: EarlierDeath) -> bool:
    """True for a death of the same notebook; without one, of the same kernel."""
    path, kernel_id = seen.identity.get("notebook_path"), seen.identity.get("kernel_id")
    if path and death.notebook_path:
        return bool(path == death.notebook_path)
    return bool(kernel_id and kernel_id == death.kernel_id)
