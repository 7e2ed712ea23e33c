"""The versions that the installed TensorFlow was built for."""

from __future__ import annotations

from dataclasses import dataclass

from ..collectors.packages import Package
from ..collectors.versions import InstalledTensorFlow
from ..diagnosis.catalog.tensorflow import build_of, gpu_code_of, series_build

# The packages that install a folder `tensorflow`. Source: their pages in the package index.
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


@dataclass(frozen=True)
class Build:
    """A build of TensorFlow.

    Attributes:
        package: The package that contains it.
        version: Version of that package.
        uses_cuda: Whether it uses NVIDIA GPUs; None if its build information is missing.
        cuda: CUDA version of the build, such as ``12.5.1``.
        cudnn: cuDNN version of the build, such as ``9.3``; only ``9`` if the minor version is unknown.
        gpu_code: The GPU code that it contains: ``sm_80``, ``compute_90``.
        in_table: Whether it is a published build that is in the tables.
    """

    package: Package
    version: str
    uses_cuda: bool | None
    cuda: str | None
    cudnn: str | None
    gpu_code: tuple[str, ...]
    in_table: bool

    def __str__(self) -> str:
        return f"{self.package.name} {self.version}"


def build_of_installed(installed: InstalledTensorFlow) -> Build | None:
    """The build, from its own build information; None if its package has no version."""
    package = installed.package
    if package is None or package.version is None:
        return None
    tested = series_build(package.version) if _is_published(package, installed) else None
    cudnn = installed.cudnn_build_version
    return Build(
        package=package,
        version=package.version,
        uses_cuda=installed.is_cuda,
        cuda=installed.cuda_build_version,
        cudnn=tested.cudnn if tested is not None and installed.is_cuda else cudnn,
        gpu_code=installed.compute_capabilities,
        in_table=tested is not None,
    )


def _is_published(package: Package, installed: InstalledTensorFlow) -> bool:
    """False for a nightly, patched or custom build, which may use another CUDA."""
    if gpu_code_of(package.name) not in ("cuda", "none"):
        return False
    published = build_of(package.version or "")
    if published is None or not installed.is_cuda:
        return True
    major = (installed.cudnn_build_version or "").split(".")[0]
    return (installed.cuda_build_version, major) == (
        published.cuda_build_version,
        str(published.cudnn_major),
    )
