"""Explains a cell that failed because GPU memory ran out: three lines under its traceback.

TensorFlow raises ``ResourceExhaustedError``, and the kernel keeps running. The text that the allocator logged during
the cell says how much was requested, how much was free and what used the rest. Facts missing from that text are left
out. Errors that user code caught, and errors about CPU memory, are not reported.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...record.events import Emit, GpuOom

if TYPE_CHECKING:
    from ...training.progress import FitProgress

_CHAIN_LIMIT = 20
_TEXT_LIMIT = (
    100_000  # the error of a graph lists where each node was created before it states the cause
)
_WAIT_SECONDS = 1.0
# OOM when allocating tensor with shape[8,3] and type float on /job:localhost/.../device:GPU:0 by allocator GPU_0_bfc
_ALLOCATOR = re.compile(r"by allocator (\w{1,40})")
# Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)requested by op Mul
_RAN_OUT = re.compile(
    r"Allocator \(GPU_\w{1,20}\) ran out of memory trying to allocate (?![^\n]{0,200}not a failure)"
)
# From XLA, without a device name: Out of memory while trying to allocate 2147483648 bytes. TensorFlow 2.21: 4.02GiB.
_XLA = re.compile(
    r"Out of memory (?:while trying to allocate|allocating) \d[\d.]{0,20} ?(?:bytes|[KMGT]?i?B)\b"
)
# Failed copying input tensor from ...CPU:0 to ...GPU:0 in order to run _EagerConst: Dst tensor is not initialized.
_COPY_FAILED = "Dst tensor is not initialized"


class Beginning(NamedTuple):
    """The start of a cell. `words`: offset of its native text; None if none is kept. `time`: Unix seconds."""

    words: int | None
    time: float


class GpuOomNotice:
    """Reports GPU out-of-memory errors that ended a cell.

    Args:
        emit: Writes an event to the journal.
        place: Bytes of native text so far.
        text_since: The native text from an offset on.
        wait_forwarded: Waits, at most the given seconds, until the native text so far is stored and forwarded.
        fit: The newest fit; None if there was none.
        gpu_made: True once TensorFlow has created a GPU device.
        prints: Whether to print the lines as well as record them.
    """

    def __init__(
        self,
        emit: Emit,
        place: Callable[[], int | None],
        text_since: Callable[[int], str],
        wait_forwarded: Callable[[float], object],
        fit: Callable[[], FitProgress | None],
        gpu_made: Callable[[], bool],
        *,
        prints: bool,
    ) -> None:
        self._emit = emit
        self._place = place
        self._text_since = text_since
        self._wait_forwarded = wait_forwarded
        self._fit = fit
        self._gpu_made = gpu_made
        self._prints = prints

    def begin(self) -> Beginning:
        """Note the start of a cell; takes a few microseconds."""
        return Beginning(self._place(), time.time())

    def report(self, error: BaseException, cell: Beginning, count: int | None) -> None:
        """Report the error that ended a cell if GPU memory ran out.

        IPython has already shown the traceback, so the lines appear under it.
        """
        message = out_of_memory_text(error)
        if message is None:
            return
        # The allocator's text may be hundreds of KiB and still in transit; our lines must come after it.
        with contextlib.suppress(KeyboardInterrupt):  # Stop ends only this wait: the cell has ended
            self._wait_forwarded(_WAIT_SECONDS)
        native = "" if cell.words is None else self._text_since(cell.words)
        if not speaks_of_gpu(message, native, gpu_made=self._gpu_made()):
            return
        # imported only here: its patterns take time to build
        from ...diagnosis.gpu_oom_lines import gpu_oom_lines

        fit = self._fit()
        in_cell = fit is not None and fit.started >= cell.time
        batch = (fit.batch_size, fit.batch_place) if fit is not None and in_cell else (None,)
        lines = gpu_oom_lines(native, message, *batch)
        if self._prints:
            print("\n".join(lines), file=sys.stderr)
        self._emit(GpuOom(execution_count=count, lines=tuple(lines)))


def out_of_memory_text(error: BaseException) -> str | None:
    """The text of TensorFlow's out-of-memory error in this error or its causes; None if there is none."""
    for one in _chain(error):
        names = {kind.__name__ for kind in type(one).__mro__ if _is_from_tensorflow(kind)}
        if "ResourceExhaustedError" in names:
            return _text(one)
        if "InternalError" in names and _COPY_FAILED in (text := _text(one)):
            return text
    return None


def _is_from_tensorflow(kind: type) -> bool:
    return str(getattr(kind, "__module__", "")).partition(".")[0] == "tensorflow"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and contexts, each once, at most twenty."""
    ahead: list[Any] = [error]
    seen: set[int] = set()
    while ahead and len(seen) < _CHAIN_LIMIT:
        one = ahead.pop(0)
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        ahead += [one.__cause__, None if one.__suppress_context__ else one.__context__]


def _text(error: BaseException) -> str:
    message = getattr(error, "message", None)
    return (message if isinstance(message, str) else str(error))[:_TEXT_LIMIT]


def speaks_of_gpu(message: str, native_text: str, *, gpu_made: bool) -> bool:
    """True if GPU memory ran out, not host memory. The ``gpu_host`` allocator manages pinned host memory."""
    allocator = _ALLOCATOR.search(message)
    if allocator is not None:
        name = allocator[1].lower()
        return name.startswith("gpu_") and not name.startswith("gpu_host")
    if "device:GPU:" in message:
        return True
    if "device:CPU:" in message:
        return False
    if _RAN_OUT.search(native_text) is not None:
        return True
    return gpu_made and (_XLA.search(message) is not None or _COPY_FAILED in message)
