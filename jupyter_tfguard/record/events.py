"""What happened in a kernel: one dataclass for each kind of event in the journal. The kernel writes them, all others read.

A new event is one class here, in `KINDS`, and the place that emits it. ``FORMAT.md`` lists them all; a test compares it.
Sizes are bytes, times Unix seconds. Unknown is None: a notebook can write anything into its own journal.

No event is changed after it was made. The classes are not frozen, because a kernel makes all of them when it starts, and
Python needs three times as long for frozen ones that can be compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ..batch_place import BatchPlace
from ..decode import decode, dict_of, size_of
from ..kept_data import Holder, Kept

HEAD_LIMIT = 80
# `what` of the user's own training loop, in the events and the progress of a fit.
LOOP = "loop"
# How an end was requested, and the reasons of an end mark that make a report: quit() in a cell; and the end of the
# interpreter without a request, while a cell ran or right after a stop.
QUIT, UNASKED = "quit", "unasked"
_NAME_LIMIT = 200

Size = Annotated[int | None, size_of]
Count = Annotated[int | None, size_of]
Name = Annotated[str | None, _NAME_LIMIT]
Lines = Annotated[tuple[str, ...], 8]
Holders = Annotated[tuple[Holder, ...], 3]


@dataclass(kw_only=True, eq=False, repr=False)
class Event:
    """An event. On disk: its `kind` and its fields; a field that has a default only where it differs from that.

    Attributes:
        time: When it was written, Unix seconds. monotonic: The same on the monotonic clock. Set by the reader.
    """

    kind: ClassVar[str]
    time: float | None = None
    monotonic: float | None = None

    def fields(self) -> dict[str, Any]:
        """The fields as they are written."""
        values = {one: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {one.name: _plain(value) for one, value in values.items() if value != one.default}


Emit = Callable[[Event], None]


@dataclass(kw_only=True, eq=False, repr=False)
class Probe(Event):
    """The doctor's test process ran."""

    kind = "probe"


@dataclass(kw_only=True, eq=False, repr=False)
class StartEvent(Event):
    """Something begins. `kept_bytes`: resident memory without pages of files."""

    rss_bytes: Size
    kept_bytes: Size

    @property
    def size_bytes(self) -> int | None:
        """Memory at that moment, without pages of files if these are known."""
        return self.rss_bytes if self.kept_bytes is None else self.kept_bytes


@dataclass(kw_only=True, eq=False, repr=False)
class CellStart(StartEvent):
    """A cell starts. `head`: first characters of its source; None if source text is not recorded."""

    kind = "cell_start"
    execution_count: Count
    cell_id: Name
    head: Annotated[str | None, HEAD_LIMIT]
    peak_bytes: Size


@dataclass(eq=False, repr=False)
class Array:
    """A top-level array of the notebook."""

    name: Annotated[str, 80]
    bytes: int


@dataclass(kw_only=True, eq=False, repr=False)
class CellEnd(Event):
    """A cell has ended. `error`: class name of its exception. `arrays`: the largest."""

    kind = "cell_end"
    execution_count: Count
    seconds: float | None
    ok: bool | None
    error: Name
    arrays: tuple[Array, ...] | None = None
    rss_start_bytes: Size
    peak_bytes: Size
    rss_bytes: Size
    gpu_start_bytes: Size
    gpu_peak_bytes: Size
    gpu_bytes: Size


@dataclass(kw_only=True, eq=False, repr=False)
class LoopStart(StartEvent):
    """The user's own training loop starts. `what`: `LOOP`."""

    kind = "fit_start"
    fit_id: Count
    what: Name
    optimizer: Name


@dataclass(kw_only=True, eq=False, repr=False)
class FitStart(LoopStart):
    """A fit, evaluate or predict starts. The models are counted only for a fit; the rest is None for a loop."""

    model_name: Name
    parameter_count: Count
    batch_size: Count
    batch_place: Annotated[BatchPlace, BatchPlace.of]
    batch_shape: tuple[int, ...] | None
    batch_dtype: Name
    epochs: Count
    steps: Count
    model_number: Count = None
    models_alive: Count = None
    session_cleared: bool | None = None
    jit_compile: bool | None = None
    kept_data: tuple[Kept, ...] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class FitReady(Event):
    """More is known of a fit that has started."""

    kind = "fit_ready"
    fit_id: Count
    steps: Count = None
    epochs: Count = None
    parameter_count: Count = None


@dataclass(kw_only=True, eq=False, repr=False)
class EpochEnd(Event):
    """An epoch of a fit has ended. `epoch`: from 1. `logs`: numbers by name; NaN and infinite ones are kept."""

    kind = "epoch_end"
    fit_id: Count
    epoch: Count
    logs: dict[str, Any] | None
    seconds: float | None


@dataclass(kw_only=True, eq=False, repr=False)
class FitEnd(Event):
    """A fit or loop has ended. `error`: class name of its exception."""

    kind = "fit_end"
    fit_id: Count
    ok: bool | None
    error: Name

    @classmethod
    def of(cls, fit_id: int, error: BaseException | None) -> FitEnd:
        """The event of a fit that ended with this exception, or None."""
        name = None if error is None else type(error).__name__
        return cls(fit_id=fit_id, ok=error is None, error=name)


@dataclass(kw_only=True, eq=False, repr=False)
class CheckpointWritten(Event):
    """A checkpoint was written.

    Attributes:
        path: Path of the file or folder. written: Unix seconds.
        by: Class name of the callback, or ``tfguard``.
        weights_only: True if it contains only the weights.
        what: `LOOP` for that of a training loop.
    """

    kind = "checkpoint"
    path: str | None
    written: float | None
    by: Name
    weights_only: bool | None
    what: Name = None


@dataclass(kw_only=True, eq=False, repr=False)
class ExitRequested(Event):
    """The end of the kernel was requested. `how`: ``shutdown_request`` or ``quit``."""

    kind = "exit_requested"
    how: Name
    restart: bool | None


@dataclass(kw_only=True, eq=False, repr=False)
class MemoryGrowthSetting(Event):
    """TensorFlow's memory growth was read, and is another than before."""

    kind = "growth"
    state: Name
    text: str | None


@dataclass(kw_only=True, eq=False, repr=False)
class Import(Event):
    """TensorFlow or Keras was imported."""

    kind = "import"
    module: Name
    version: Name


@dataclass(kw_only=True, eq=False, repr=False)
class GpuDevice(Event):
    """TensorFlow has created a GPU device, such as ``GPU:0``. `limit_bytes`: what it may use of the card."""

    kind = "gpu_device"
    device: Name
    limit_bytes: Size
    bus_id: Annotated[str | None, 20]


@dataclass(kw_only=True, eq=False, repr=False)
class Notice(Event):
    """Memory ran out, or will, and the kernel went on. `lines`: what the user was shown.

    Attributes:
        mark_kind: Its kind in the chart of a report. mark: Its label in a chart.
    """

    mark_kind: ClassVar[str]
    mark: ClassVar[str]
    execution_count: Count
    lines: Lines


@dataclass(kw_only=True, eq=False, repr=False)
class GpuOom(Notice):
    """A cell failed because GPU memory ran out."""

    kind = mark_kind = "gpu_oom"
    mark = "GPU OOM"


@dataclass(kw_only=True, eq=False, repr=False)
class MemoryStopped(Notice):
    """The guard stopped a cell or refused a request. `available_bytes`, `limit_bytes`: at that moment."""

    kind = mark_kind = "memory_stop"
    mark = "stopped"
    what: Name
    seconds: float | None
    available_bytes: Size
    limit_bytes: Size
    holders: Holders


@dataclass(kw_only=True, eq=False, repr=False)
class MemoryGrowth(Notice):
    """An alarm: memory grew steadily."""

    kind = "memory_growth"
    mark_kind, mark = "leak", "grows"
    holders: Holders


KINDS: dict[str, type[Event]] = {
    one.kind: one
    for one in (
        Probe,
        CellStart,
        CellEnd,
        FitStart,  # also reads LoopStart
        FitReady,
        EpochEnd,
        FitEnd,
        CheckpointWritten,
        ExitRequested,
        MemoryGrowthSetting,
        Import,
        GpuDevice,
        GpuOom,
        MemoryStopped,
        MemoryGrowth,
    )
}


def event_of(value: object) -> Event | None:
    """The event that a journal or a bundle has as JSON; None for a kind that this version does not know."""
    found = dict_of(value)
    kind = KINDS.get(str(found.get("kind")))
    moment = {"time": found.get("t"), "monotonic": found.get("m")}
    return None if kind is None else decode(kind, found | moment)


def events_of(values: Iterable[object]) -> list[Event]:
    """Those of them that this version knows, in order."""
    return [event for value in values if (event := event_of(value)) is not None]


def _plain(value: Any) -> Any:
    """For JSON: tuples as lists, dataclasses as objects."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    is_object = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return dataclasses.asdict(value) if is_object else value
