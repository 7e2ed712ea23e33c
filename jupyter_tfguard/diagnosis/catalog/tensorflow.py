"""What a TensorFlow release was built and tested with. This module does not check what is installed."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from . import table
from .releases import released

_TABLE = "tensorflow_builds"


@dataclass(frozen=True)
class SeriesBuild:
    """What the TensorFlow project built and tested a series with on Linux, according to its documentation.

    Attributes:
        python: Python versions, ``3.9-3.12``.
        cuda: CUDA version, ``12.5``.
        cudnn: cuDNN version, ``9.3``.
    """

    python: str
    cuda: str
    cudnn: str


@dataclass(frozen=True)
class TensorFlowBuild:
    """The published wheel of a release for Linux x86-64.

    Attributes:
        version: ``2.18.1``.
        cuda_build_version: The CUDA version that it was built with, ``12.5.1``.
        cudnn_major: The cuDNN major version that it was built with.
        gpu_code: The GPU code that it contains: ``sm_80``, ``compute_90`` (that is PTX and machine code).
        and_cuda: The NVIDIA packages of its ``and-cuda`` extra; empty before 2.14, which has none.
        tested: What its series was tested with.
    """

    version: str
    cuda_build_version: str
    cudnn_major: int
    gpu_code: tuple[str, ...]
    and_cuda: tuple[Requirement, ...]
    tested: SeriesBuild | None


def build_of(version: str) -> TensorFlowBuild | None:
    """The build of exactly this release of the package ``tensorflow``; None when it is not in the table.

    Args:
        version: Version in the package's metadata. Nightly (``2.22.0.dev20260101``) and custom builds
            (``2.18.0+local``) are not in the table, nor are releases that have not been inspected.
    """
    wanted = released(version)
    return None if wanted is None else _builds().get(wanted)


def builds() -> tuple[TensorFlowBuild, ...]:
    """All builds, newest first."""
    return tuple(_builds().values())


def series_build(version: str) -> SeriesBuild | None:
    """What the series of this release was tested with; None when it is not in the table."""
    wanted = released(version)
    if wanted is None:
        return None
    series = f"{wanted.major}.{wanted.minor}"
    for row in table(_TABLE)["tested"]:
        if row["platform"] == "linux" and row["series"] == series:
            return SeriesBuild(row["python"], row["cuda"], row["cudnn"])
    return None


def gpu_code_of(package: str) -> str | None:
    """GPU code in the builds of a package: ``cuda``, ``none`` or ``unknown``; None when it is not in the table."""
    name = canonicalize_name(package)
    return next((row["gpu"] for row in table(_TABLE)["package"] if row["name"] == name), None)


@functools.cache
def _builds() -> dict[Version, TensorFlowBuild]:
    extras = {
        version: tuple(map(Requirement, row["packages"]))
        for row in table(_TABLE)["and_cuda"]
        for version in row["builds"]
    }
    return {
        Version(row["version"]): TensorFlowBuild(
            version=row["version"],
            cuda_build_version=row["cuda"],
            cudnn_major=row["cudnn_major"],
            gpu_code=tuple(row["gpu_code"]),
            and_cuda=extras.get(row["version"], ()),
            tested=series_build(row["version"]),
        )
        for row in table(_TABLE)["build"]
    }
