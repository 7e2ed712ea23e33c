"""CUDA toolkits: the driver that each needs, the libraries that TensorFlow opens, and cuDNN."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from . import table, verified
from .releases import released


@dataclass(frozen=True)
class MinimumDriver:
    """The drivers for Linux that work with a toolkit.

    Attributes:
        cuda: Version of the toolkit, ``12.5.1``.
        driver: The oldest driver that runs its programs.
        toolkit_driver: The driver that came with the toolkit. Only this driver and newer ones compile its PTX.
            None when it is not in the table.
    """

    cuda: str
    driver: str
    toolkit_driver: str | None

    def fits(self, driver_version: str) -> bool | None:
        """Whether programs of this toolkit run on that driver; None when its version is not known."""
        return _at_least(driver_version, self.driver)

    def compiles_ptx(self, driver_version: str) -> bool | None:
        """Whether that driver compiles the PTX of this toolkit; None when that is not known."""
        return (
            None if self.toolkit_driver is None else _at_least(driver_version, self.toolkit_driver)
        )


def _at_least(version: str, oldest: str) -> bool | None:
    driver = released(version)
    return None if driver is None else driver >= Version(oldest)


def newest_family(driver_version: str) -> int | None:
    """The newest major version of CUDA whose programs run on this driver for Linux; None when the table does not say."""
    fitting = (
        int(row["cuda"])
        for row in table("cuda_driver")["family"]
        if verified(row) and _at_least(driver_version, row["linux"])
    )
    return max(fitting, default=None)


def minimum_driver(cuda: str) -> MinimumDriver | None:
    """The drivers for Linux that a CUDA toolkit (``12.5``, ``12.5.1``) needs; None when it is not in the table."""
    wanted = released(cuda)
    if wanted is None:
        return None
    rows = table("cuda_driver")
    own = next((r for r in rows["toolkit"] if Version(r["cuda"]) == wanted), None)
    family = next((r for r in rows["family"] if r["cuda"] == str(wanted.major)), None)
    came_with = own["linux"] if own is not None else None
    if family is not None:
        return MinimumDriver(cuda, family["linux"], came_with)
    # Before CUDA 11 a toolkit needs its own driver.
    return None if own is None else MinimumDriver(cuda, own["linux"], came_with)


def cuda_libraries(cuda_major: int) -> dict[str, str]:
    """Libraries that a build for this CUDA major version opens, except cuDNN: {file (``libcudart.so.12``): pip package}."""
    rows = table("cuda_libraries")["library"]
    return {row["file"]: row["package"] for row in rows if row["cuda_major"] == cuda_major}


def cudnn_libraries(major: int) -> tuple[str, ...]:
    """File names of a major version of cuDNN (``libcudnn_ops.so.9``); empty for one that is not in the table."""
    rows = table("cudnn")["library"]
    return tuple(row["file"] for row in rows if row["file"].endswith(f".so.{major}"))


def cudnn_fits(loaded: str, built: str) -> bool | None:
    """Whether the loaded cuDNN (``9.1.0``) works with a program that was built with `built` (``9.3``, or just ``9``).

    The major versions must be equal, and the loaded minor version must not be older. None when one is not a version.
    """
    here, wanted = released(loaded), released(built)
    if here is None or wanted is None:
        return None
    return here.major == wanted.major and here.minor >= wanted.minor
