"""What an error of CUDA, cuDNN or cuBLAS means. The rules decide whether it is the cause of an end."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from . import table

_NAME = re.compile(
    r"\b(?:CUDA_ERROR_[A-Z0-9_]{3,60}|cudaError[A-Z]\w{2,60}|CU(?:DNN|BLAS)_STATUS_[A-Z_]{3,60})\b"
)


@dataclass(frozen=True)
class GpuError:
    """One error number.

    Attributes:
        name: Name in the driver API or the library.
        sticky: True if every later CUDA call of the process fails too, so that the process must be restarted.
    """

    code: int
    name: str
    sticky: bool


def error_in(text: str) -> GpuError | None:
    """The first error of the table that a text names; None when it names none."""
    known = (_by_name().get(name) for name in _NAME.findall(text))
    return next((error for error in known if error is not None), None)


@functools.cache
def _by_name() -> dict[str, GpuError]:
    found: dict[str, GpuError] = {}
    for library in ("cuda", "cudnn", "cublas"):
        for row in table("cuda_errors")[library]:
            error = GpuError(row["code"], row["name"], row.get("sticky", False))
            found |= {name: error for name in (row["name"], row.get("runtime")) if name}
    return found
