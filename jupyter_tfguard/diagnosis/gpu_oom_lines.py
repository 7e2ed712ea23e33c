"""A GPU out-of-memory error in three lines: requested and free memory, largest blocks, what to change.

For a kernel that survives the error: the lines are printed below its traceback and shown in the panel. What TensorFlow
did not log is left out. The report of a crash has more details: rules/gpu_oom.py.
"""

from __future__ import annotations

from ..batch_place import IN_ARGUMENT, BatchPlace
from .allocator_dump import AllocatorDump, allocator_dump
from .log_lines import native_lines

_LINE_LENGTH = 400
# A larger first dimension of a tensor is not a batch size.
LARGEST_BATCH = 65536


def gpu_oom_lines(
    native_text: str, message: str, batch_size: int | None, place: BatchPlace = IN_ARGUMENT
) -> list[str]:
    """The lines, from the native stderr text of the cell and the text of the error.

    Args:
        batch_size: Batch size of the fit that failed; None if unknown.
        place: Where it is set.
    """
    dump = allocator_dump(native_lines([*native_text.split("\n"), *message.split("\n")]))
    numbers = f": {dump.numbers}" if dump.numbers else ""
    unknown = (
        "XLA does not log them"
        if dump.from_xla
        else "TensorFlow logs them only with TF_CPP_MIN_LOG_LEVEL=0"
    )
    holders = dump.holders_text or f"unknown ({unknown})"
    lines = (
        f"tfguard: the GPU ran out of memory{numbers}.",
        f"Largest blocks: {holders}.",
        f"What to change: {_change(dump, batch_size, place)}.",
    )
    return [line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}…" for line in lines]


def _change(dump: AllocatorDump, batch_size: int | None, place: BatchPlace) -> str:
    if dump.fragmented:
        return (
            "TF_GPU_ALLOCATOR=cuda_malloc_async in the environment before the kernel starts: enough memory was free in total, "
            "but in blocks that were too small (fragmentation), and memory growth does not help against that"
        )
    first = dump.shape[0] if dump.shape and len(dump.shape) > 1 else 0
    if batch_size is not None and batch_size > 1:
        smaller = f"{place.change('fit', batch_size // 2)} instead of {batch_size} (estimate)"
    elif 1 < first <= LARGEST_BATCH:
        smaller = f"{first // 2} instead of {first} at once, if that is the batch (estimate)"
    else:
        smaller = "a smaller batch, or a smaller model"
    if dump.refused_by_card:
        return f"check in the panel or nvidia-smi which other processes hold memory on this card; {smaller}"
    return f"{smaller}; memory from earlier cells is freed when you delete its variables or restart the kernel"
