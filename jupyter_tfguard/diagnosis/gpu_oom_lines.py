"""A GPU's memory that ran out, told in three lines: what was asked for and free, who held most, what to change.

For a kernel that lives on: the lines stand under the error's traceback, and in the panel. What TensorFlow did not tell is
left out of them. The report of a death tells more: rules/gpu_oom.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..units import human_bytes
from .allocator_dump import allocator_dump
from .allocator_state import AllocatorDump
from .log_lines import native_lines

_LINE_LENGTH = 400
_HOLDERS = 3
# A larger first dimension of a tensor is no batch.
_LARGEST_BATCH = 65536


@dataclass(frozen=True)
class GpuOom:
    """One request that found no room. `batch_size`: of the fit that made it; None unknown."""

    dump: AllocatorDump
    batch_size: int | None

    @classmethod
    def of(cls, native_text: str, message: str, batch_size: int | None) -> GpuOom:
        """From the native text of the cell and the error's own text."""
        lines = native_lines([*native_text.split("\n"), *message.split("\n")])
        return cls(allocator_dump(lines), batch_size)

    @property
    def lines(self) -> tuple[str, str, str]:
        """For people."""
        told = f": {', '.join(parts)}" if (parts := self._numbers()) else ""
        first = f"tfguard: the GPU ran out of memory{told}."
        lines = (
            first,
            f"Biggest holders: {self._holders()}.",
            f"What to change: {self._change()}.",
        )
        cut = [line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}…" for line in lines]
        return cut[0], cut[1], cut[2]

    def fields(self) -> dict[str, Any]:
        """As the event has it; None unknown."""
        return {
            "lines": list(self.lines),
            "asked_bytes": self.dump.asked_bytes,
            "free_bytes": self.dump.free_bytes,
            "largest_free_bytes": self.dump.largest_free_bytes,
            "limit_bytes": self.dump.limit_bytes,
        }

    def _numbers(self) -> list[str]:
        dump, parts = self.dump, []
        if dump.asked_bytes is not None:
            parts.append(f"asked for {human_bytes(dump.asked_bytes)}")
        if dump.asynchronous and dump.card_free_bytes is not None:
            card = f" of {human_bytes(dump.card_total_bytes)}" if dump.card_total_bytes else ""
            parts.append(f"free on the card {human_bytes(dump.card_free_bytes)}{card}")
        elif not dump.asynchronous and dump.free_bytes is not None:
            free = f"{human_bytes(dump.free_bytes)} of {human_bytes(dump.limit_bytes)}"
            if dump.refused_by_card:
                parts.append(f"used less than its limit ({free} left), but the card had no room")
            else:
                parts.append(f"free {free}")
        if dump.largest_free_bytes is not None and not dump.refused_by_card:
            parts.append(f"largest free block {human_bytes(dump.largest_free_bytes)}")
        return parts

    def _holders(self) -> str:
        if self.dump.holders:
            return "; ".join(holder.text for holder in self.dump.holders[:_HOLDERS])
        return "not told (TensorFlow logs them with TF_CPP_MIN_LOG_LEVEL=0 only)"

    def _change(self) -> str:
        if self.dump.fragmented:
            return (
                "TF_GPU_ALLOCATOR=cuda_malloc_async in the environment before the kernel starts: enough was free in sum, "
                "but in pieces that were too small; memory growth does not help against that"
            )
        smaller = self._smaller_batch()
        if self.dump.refused_by_card:
            return f"see in the panel or nvidia-smi who else holds memory on this card; {smaller}"
        return f"{smaller}; what earlier cells left on the GPU goes when its variables do, or at a restart"

    def _smaller_batch(self) -> str:
        if self.batch_size is not None and self.batch_size > 1:
            return f"batch_size={self.batch_size // 2} instead of {self.batch_size} (estimate)"
        shape = self.dump.shape
        if shape is not None and len(shape) > 1 and 1 < shape[0] <= _LARGEST_BATCH:
            return f"{shape[0] // 2} instead of {shape[0]} at once, if that is the batch (estimate)"
        return "a smaller batch, or a smaller model"
