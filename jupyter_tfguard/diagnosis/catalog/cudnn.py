"""The files of cuDNN, and which of its versions go together."""

from __future__ import annotations

from dataclasses import dataclass

from . import table
from .origin import Origin, origin, released

_TABLE = "cudnn"


@dataclass(frozen=True)
class CudnnLibrary:
    """One file of a major version of cuDNN.

    Attributes:
        file: Its name, ``libcudnn_ops.so.9``.
        part: What it holds.
    """

    major: int
    file: str
    part: str
    origin: Origin


def cudnn_libraries(major: int) -> tuple[CudnnLibrary, ...]:
    """The files of a major version; empty for one that is not in the table."""
    return tuple(
        CudnnLibrary(major, row["file"], row["part"], origin(_TABLE, row))
        for row in table(_TABLE)["library"]
        if row["file"].endswith(f".so.{major}")
    )


@dataclass(frozen=True)
class CudnnFit:
    """Whether a cuDNN serves a program that was built with another.

    Attributes:
        rule: The rule that decided, as a sentence.
    """

    fits: bool
    rule: str
    origin: Origin


def cudnn_fit(loaded: str, built: str) -> CudnnFit | None:
    """Whether the cuDNN that is loaded (``9.1.0``) serves a build with that one (``9.3``, or just ``9``).

    Returns:
        None when one of them is no version.
    """
    here, wanted = released(loaded), released(built)
    if here is None or wanted is None:
        return None
    rules = {row["id"]: row for row in table(_TABLE)["rule"]}
    same = here.major == wanted.major
    row = rules["minor" if same else "major"]
    return CudnnFit(same and here.minor >= wanted.minor, row["text"], origin(_TABLE, row))
