"""The CUDA libraries that a TensorFlow build opens by name."""

from __future__ import annotations

from dataclasses import dataclass

from . import table
from .origin import Origin, origin

_TABLE = "cuda_libraries"


@dataclass(frozen=True)
class CudaLibrary:
    """One library.

    Attributes:
        file: The name that is opened, ``libcudart.so.12``.
        package: The package of pip that holds it.
    """

    cuda_major: int
    file: str
    package: str
    origin: Origin


def cuda_libraries(cuda_major: int) -> tuple[CudaLibrary, ...]:
    """What a build for this major version of CUDA opens, cuDNN apart; empty for one that is not in the table."""
    return tuple(
        CudaLibrary(cuda_major, row["file"], row["package"], origin(_TABLE, row))
        for row in table(_TABLE)["library"]
        if row["cuda_major"] == cuda_major
    )
