"""Which display driver a CUDA toolkit needs."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from . import table
from .origin import Origin, origin, released

_TABLE = "cuda_driver"


@dataclass(frozen=True)
class MinimumDriver:
    """The drivers for Linux that a toolkit goes with.

    Attributes:
        cuda: The toolkit, ``12.5.1``.
        driver: The oldest that runs its programs.
        toolkit_driver: The one that it came with; PTX of this toolkit is compiled by this one and newer ones only.
            None when that was not read.
        origin: Where ``driver`` comes from.
    """

    cuda: str
    driver: str
    toolkit_driver: str | None
    origin: Origin

    def fits(self, driver_version: str) -> bool | None:
        """Whether programs of this toolkit run on that driver; None when its version says nothing."""
        return _at_least(driver_version, self.driver)

    def compiles_ptx(self, driver_version: str) -> bool | None:
        """Whether that driver knows the PTX of this toolkit; None when that is not known."""
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
        for row in table(_TABLE)["family"]
        if origin(_TABLE, row).verified and _at_least(driver_version, row["linux"])
    )
    return max(fitting, default=None)


def minimum_driver(cuda: str) -> MinimumDriver | None:
    """The drivers for Linux that a CUDA toolkit (``12.5``, ``12.5.1``) needs; None when it is not in the table."""
    wanted = released(cuda)
    if wanted is None:
        return None
    own = next((r for r in table(_TABLE)["toolkit"] if Version(r["cuda"]) == wanted), None)
    family = next((r for r in table(_TABLE)["family"] if r["cuda"] == str(wanted.major)), None)
    came_with = own["linux"] if own is not None else None
    if family is not None:
        return MinimumDriver(cuda, family["linux"], came_with, origin(_TABLE, family))
    if own is None:
        return None
    # Before CUDA 11: its own driver.
    return MinimumDriver(cuda, own["linux"], own["linux"], origin(_TABLE, own))
