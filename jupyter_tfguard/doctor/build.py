"""What the installed TensorFlow was built for: by its own word, completed from the table where it is a published build."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.version import Version

from ..collectors.packages import Package
from ..collectors.versions import InstalledTensorFlow
from ..diagnosis.catalog.origin import released
from ..diagnosis.catalog.tensorflow import SeriesBuild, build_of, distribution, series_build

# The packages that put a folder `tensorflow` in place. Source: their pages in the package index.
PROVIDERS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tf-nightly",
    "tf-nightly-cpu",
    "tf-nightly-gpu",
    "tensorflow-intel",
    "tensorflow-macos",
    "tensorflow-cpu-aws",
    "tensorflow-aarch64",
    "tensorflow-rocm",
    "nvidia-tensorflow",
    "intel-tensorflow",
    "intel-tensorflow-avx512",
)


_PYTHONS = re.compile(r"(\d+\.\d+)(?:-(\d+\.\d+))?")


@dataclass(frozen=True)
class Build:
    """A build of TensorFlow.

    Attributes:
        package: The package it came in.
        version: Of that package.
        uses_cuda: Whether it uses NVIDIA's GPUs; None when nothing tells.
        uses_rocm: Whether it was built for AMD's GPUs.
        cuda: The CUDA it was built with, ``12.5.1``.
        cudnn: The cuDNN it was built with, ``9.3``, or just ``9`` when the minor version is not known.
        gpu_code: The GPU code inside: ``sm_80``, ``compute_90``.
        not_in_table: Why no table speaks of it, for people; None when it is a published build.
        tested: What the project tested its series with; None when it is not in the table.
    """

    package: Package
    version: str
    uses_cuda: bool | None
    uses_rocm: bool
    cuda: str | None
    cudnn: str | None
    gpu_code: tuple[str, ...]
    not_in_table: str | None
    tested: SeriesBuild | None

    def __str__(self) -> str:
        return f"{self.package.name} {self.version}"


def build_of_installed(installed: InstalledTensorFlow) -> Build | None:
    """What it was built for; None when its package has no version."""
    package = installed.package
    if package is None or package.version is None:
        return None
    odd = _not_in_table(package, package.version, installed)
    tested = None if odd else series_build(package.version)
    published = None if odd or package.name != "tensorflow" else build_of(package.version)
    cuda, cudnn = installed.cuda_build_version, installed.cudnn_build_version
    uses_cuda, gpu_code = installed.is_cuda, installed.compute_capabilities
    if published is not None and uses_cuda is None and _for_linux_x86(package):
        uses_cuda, cuda, gpu_code = True, published.cuda_build_version, published.gpu_code
    if uses_cuda and tested is not None:
        cudnn = tested.cudnn
    return Build(
        package=package,
        version=package.version,
        uses_cuda=uses_cuda,
        uses_rocm=installed.is_rocm,
        cuda=cuda,
        cudnn=cudnn,
        gpu_code=gpu_code,
        not_in_table=odd,
        tested=tested,
    )


def python_was_tested(pythons: str, version: str) -> bool:
    """Whether a Python (``3.11.7``) lies in what a series was tested with (``2.7, 3.5-3.8``)."""
    here = Version(version).release[:2]
    for hit in _PYTHONS.finditer(pythons):
        first = Version(hit[1]).release
        if first <= here <= (Version(hit[2]).release if hit[2] else first):
            return True
    return False


def _not_in_table(package: Package, version: str, installed: InstalledTensorFlow) -> str | None:
    known = distribution(package.name)
    if known is None or known.gpu == "unknown" or released(version) is None:
        return "a nightly, patched or home-made build"
    if series_build(version) is None:
        return "a release that nobody has read"
    published = build_of(version)
    if published is None or not installed.is_cuda:
        return None
    told = (installed.cuda_build_version, (installed.cudnn_build_version or "").split(".")[0])
    wanted = (published.cuda_build_version, str(published.cudnn_major))
    if told != wanted:
        return (
            f"a home-made build, for the published one was built with CUDA {wanted[0]} and "
            f"cuDNN {wanted[1]}"
        )
    return None


def _for_linux_x86(package: Package) -> bool:
    return any("linux" in tag and tag.endswith("x86_64") for tag in package.tags)
