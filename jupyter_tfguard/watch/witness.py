"""What is known of one kernel that somebody watches, and the host that runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ..limits import Limit
from ..metrics import Sample
from ..record.facts import Hang
from ..record.identity import ProcessIdentity
from .forecast import Forecast, Forecaster
from .history import History
from .live import Live


@dataclass
class Kernel:
    """What the host (a Jupyter server) knows of a kernel, and keeps up to date.

    Attributes:
        kernel_id, kernel_name, notebook_path: None = unknown.
        is_busy: Asked many times a second; True while a cell runs, or while that is not known.
        runs_cell: True only when it is known that a cell runs.
        is_ending: True once the end was asked for (restart, shutdown, cull).
        heard_count: How often the kernel was heard; None = not known.
    """

    kernel_id: str
    kernel_name: str | None = None
    notebook_path: str | None = None
    is_busy: Callable[[], bool] = lambda: True
    runs_cell: Callable[[], bool] = lambda: False
    is_ending: Callable[[], bool] = lambda: False
    heard_count: Callable[[], int | None] = lambda: None


class Witness(ABC):
    """What was seen of one kernel: all that the panel shows of it and that the GPUs are joined with.

    Who reads a witness asks for no more than this, so that it may be that of a living process
    (:class:`~.process_witness.ProcessWitness`) or of a recording.

    Args:
        identity: The process that the host knows.
        kernel: What the host knows of it.
        since: Monotonic seconds when the watching began.

    Attributes:
        identity, kernel, since: As above.
        history: Its last samples.
        live: What the kernel says of itself.
        peak_bytes: The most that it held resident; None = not known.
        children: Process ids of its descendants, as last seen.
        is_busy: A cell ran lately, or that is not known.
        is_switched_off: Whether it was started with the guard switched off in its environment; None = not known.
        hang: How it stands still now; None while it does not.
    """

    def __init__(self, identity: ProcessIdentity, kernel: Kernel, since: float) -> None:
        self.identity = identity
        self.kernel = kernel
        self.since = since
        self.history = History()
        self.live = Live()
        self.peak_bytes: int | None = None
        self.children: tuple[int, ...] = ()
        self.is_busy = True
        self.is_switched_off: bool | None = None
        self.hang: Hang | None = None
        self._forecaster = Forecaster(since)

    @property
    @abstractmethod
    def latest(self) -> Sample | None:
        """Newest sample; None before the first."""

    @property
    def sampled_at(self) -> float | None:
        """Unix seconds of the newest sample; None before the first."""
        latest = self.latest
        return None if latest is None else latest.time

    @abstractmethod
    def binding_limit(self) -> Limit | None:
        """The limit that binds; None before the first sample."""

    def forecast(self) -> Forecast | None:
        """When a busy kernel's rise reaches the limit; None where that is not sure. Made when somebody asks."""
        return self._forecaster.now() if self.is_busy else None

    def limit(self) -> tuple[int | None, str | None]:
        """Bytes of the limit that binds, and its kind; both None before the first sample."""
        found = self.binding_limit()
        return (None, None) if found is None else (found.size_bytes, found.kind)
