"""Deaths that are told together: how many, whose, of which causes."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Kernels of a group that are told apart; beyond it their number is "at least".
KERNELS_LIMIT = 4096
CAUSES_LIMIT = 40
OTHER_CAUSES = "other"
_WHOSE = ("kernel_id", "notebook_path", "kernel_name")

Json = dict[str, Any]


@dataclass(frozen=True)
class Death:
    """One death to be counted.

    Attributes:
        kernel_id, kernel_name, notebook_path: Whose; None = unknown.
        cause, confidence, short_title: As diagnosed.
        died: Unix seconds.
        kernel_alive: A child was killed and the kernel goes on.
    """

    kernel_id: str | None
    kernel_name: str | None
    notebook_path: str | None
    cause: str
    confidence: str
    short_title: str
    died: float
    kernel_alive: bool = False

    @property
    def kernel_key(self) -> str:
        """What deaths of one kernel have in common."""
        return kernel_key(dataclasses.asdict(self), alive=self.kernel_alive)


def kernel_key(identity: Json, *, alive: bool = False) -> str:
    """What deaths of one kernel have in common: its id, else its notebook, else its name.

    Args:
        identity: ``kernel_id``, ``notebook_path`` and ``kernel_name``, as far as known.
        alive: A child was killed: never one sum with deaths of the kernel itself.
    """
    whose = next((identity[n] for n in _WHOSE if identity.get(n)), "")
    return f"{'child' if alive else 'kernel'}:{whose}"


@dataclass(frozen=True)
class CauseCount:
    """How many of a group's deaths had this cause, and in which words; the confidence is that of the least sure."""

    cause: str
    short_title: str
    confidence: str
    count: int


@dataclass(frozen=True)
class Group:
    """Deaths that are told together.

    Attributes:
        id: Of its line in the list.
        one_kernel: True for a kernel that dies again and again, False for deaths of any kernels.
        kernel_id, kernel_name, notebook_path: Of the newest death; None where many kernels died.
        deaths_count: Exactly, each counted once.
        first, last: Unix seconds of the first and the last death.
        causes: The most frequent first.
        kernels: A short hash per kernel, at most `KERNELS_LIMIT`.
        kernel_alive: The kernels live; children were killed.
        read_count, announced_count: Deaths there were when a person looked at it, and when a kernel told of it.
    """

    id: str
    one_kernel: bool
    kernel_id: str | None = None
    kernel_name: str | None = None
    notebook_path: str | None = None
    deaths_count: int = 0
    first: float = 0.0
    last: float = 0.0
    causes: tuple[CauseCount, ...] = ()
    kernels: tuple[str, ...] = ()
    kernel_alive: bool = False
    read_count: int = 0
    announced_count: int = 0

    @property
    def kernels_count(self) -> int:
        """Kernels that died; exact below `KERNELS_LIMIT`."""
        return len(self.kernels)

    def with_deaths(self, deaths: Sequence[Death]) -> Group:
        """The group with these deaths counted too."""
        causes = {known.cause: known for known in self.causes}
        kernels = dict.fromkeys(self.kernels)
        for death in deaths:
            _count_cause(causes, death)
            if len(kernels) < KERNELS_LIMIT:
                kernels.setdefault(short_hash(death.kernel_key))
        newest = deaths[-1]
        times = [death.died for death in deaths] + ([self.first, self.last] if self.first else [])
        whose = newest if self.one_kernel else self
        return dataclasses.replace(
            self,
            kernel_id=whose.kernel_id,
            kernel_name=whose.kernel_name or self.kernel_name,
            notebook_path=whose.notebook_path or self.notebook_path,
            deaths_count=self.deaths_count + len(deaths),
            first=min(times),
            last=max(times),
            causes=tuple(sorted(causes.values(), key=lambda c: (-c.count, c.cause))),
            kernels=tuple(kernels),
            kernel_alive=newest.kernel_alive,
        )


def _count_cause(causes: dict[str, CauseCount], death: Death) -> None:
    name = death.cause
    if name not in causes and len(causes) >= CAUSES_LIMIT:
        name = OTHER_CAUSES
    known = causes.get(name)
    if known is None:
        title = "Other causes" if name == OTHER_CAUSES else death.short_title
        causes[name] = CauseCount(name, title, death.confidence, 1)
    else:
        weakest = max((known.confidence, death.confidence), key=_doubt)
        causes[name] = dataclasses.replace(known, confidence=weakest, count=known.count + 1)


def _doubt(confidence: str) -> int:
    order = ("certain", "likely", "possible")
    return order.index(confidence) if confidence in order else len(order)


def short_hash(text: str) -> str:
    """Tells kernels apart without naming them."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
