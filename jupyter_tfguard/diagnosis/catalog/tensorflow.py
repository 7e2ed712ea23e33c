"""What a TensorFlow release was built with, tested with and needs. Nothing is known here of what is installed."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from . import table
from .origin import Origin, origin, released

_TABLE = "tensorflow_builds"


@dataclass(frozen=True)
class SeriesBuild:
    """What the project says that it built and tested a series with.

    Attributes:
        series: ``2.18``.
        platform: ``linux`` or ``windows``.
        python: Its versions, ``3.9-3.12``.
        cuda: ``12.5``.
        cudnn: ``9.3``.
    """

    series: str
    platform: str
    python: str
    cuda: str
    cudnn: str
    compiler: str
    origin: Origin


@dataclass(frozen=True)
class TensorFlowBuild:
    """The published wheel of a release for Linux x86-64.

    Attributes:
        version: ``2.18.1``.
        python: The versions of Python that it runs with.
        cuda_build_version: The CUDA that it was built with, ``12.5.1``.
        cudnn_major: The cuDNN that it was built with.
        gpu_code: The machine code inside: ``sm_80``, ``compute_90`` (that is PTX and machine code).
        needs: What it asks of NumPy, protobuf, Keras and ml-dtypes.
        and_cuda: The NVIDIA packages of its ``and-cuda`` extra; empty before 2.14, which has none.
        tested: What its series was tested with.
    """

    version: str
    python: SpecifierSet
    cuda_build_version: str
    cudnn_major: int
    gpu_code: tuple[str, ...]
    needs: tuple[Requirement, ...]
    and_cuda: tuple[Requirement, ...]
    tested: SeriesBuild | None
    origin: Origin

    def need(self, package: str, python: str) -> SpecifierSet | None:
        """The versions of a package that it asks for under this Python (``3.12``); None when it asks for none."""
        name = canonicalize_name(package)
        for row in self.needs:
            applies = row.marker is None or row.marker.evaluate({"python_version": python})
            if canonicalize_name(row.name) == name and applies:
                return row.specifier
        return None


@dataclass(frozen=True)
class Distribution:
    """A package that holds TensorFlow.

    Attributes:
        gpu: ``cuda``, ``none``, or ``unknown``: then no row of the tables speaks of its builds.
    """

    name: str
    gpu: str
    text: str
    origin: Origin


def build_of(version: str) -> TensorFlowBuild | None:
    """The build of the package ``tensorflow``, of exactly this release; None when it is not in the table.

    Args:
        version: As the package's metadata gives it. A nightly (``2.22.0.dev20260101``) or a home-made one
            (``2.18.0+local``) is not in the table, and neither is a release that nobody read.
    """
    wanted = released(version)
    return None if wanted is None else _builds().get(wanted)


def builds() -> tuple[TensorFlowBuild, ...]:
    """All builds, newest first."""
    return tuple(_builds().values())


def series_build(version: str, platform: str = "linux") -> SeriesBuild | None:
    """What the series of this release was tested with; None when it is not in the table."""
    wanted = released(version)
    if wanted is None:
        return None
    series = f"{wanted.major}.{wanted.minor}"
    rows = (row for row in table(_TABLE)["tested"] if row["platform"] == platform)
    for row in rows:
        if row["series"] == series:
            facts = {name: row[name] for name in ("python", "cuda", "cudnn", "compiler")}
            return SeriesBuild(series, platform, **facts, origin=origin(_TABLE, row))
    return None


def distribution(name: str) -> Distribution | None:
    """Whether a package that holds TensorFlow holds GPU code; None for one that is not in the table."""
    wanted = canonicalize_name(name)
    for row in table(_TABLE)["package"]:
        if row["name"] == wanted:
            return Distribution(wanted, row["gpu"], row["text"], origin(_TABLE, row))
    return None


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
            python=SpecifierSet(row["python"]),
            cuda_build_version=row["cuda"],
            cudnn_major=row["cudnn_major"],
            gpu_code=tuple(row["gpu_code"]),
            needs=tuple(map(Requirement, row["needs"])),
            and_cuda=extras.get(row["version"], ()),
            tested=series_build(row["version"]),
            origin=origin(_TABLE, row),
        )
        for row in table(_TABLE)["build"]
    }
