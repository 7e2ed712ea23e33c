"""Whether a TensorFlow build contains code for a GPU."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from . import table, verified
from .tensorflow import build_of

_TABLE = "gpu_arch"
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)")
_CODE = re.compile(r"(sm|compute)_(\d{1,2})(\d)")


class Coverage(enum.Enum):
    """How a build runs on a GPU."""

    NATIVE = "native"  # machine code for this GPU
    PTX = "ptx"  # the driver compiles PTX at first use
    NONE = "none"


@dataclass(frozen=True)
class ArchCoverage:
    """The code of a build for a GPU.

    Attributes:
        code: The entry of the build that runs on the GPU, ``sm_80`` or ``compute_90``; None for none.
        reported: Problem that users reported although the code should run; None for none.
    """

    coverage: Coverage
    code: str | None
    reported: str | None = None


def family_of(compute_capability: str) -> str | None:
    """Name of the GPU generation with this compute capability (``8.6``); None when no verified row has it."""
    for row in table(_TABLE)["family"]:
        if compute_capability in row["capabilities"] and verified(row):
            return str(row["name"])
    return None


def arch_covered(tf_version: str, compute_capability: str) -> ArchCoverage | None:
    """How a release of TensorFlow runs on a GPU with this compute capability (``8.6``).

    Returns:
        None when the release is not in the table, or the capability is no number.
    """
    build = build_of(tf_version)
    held = None if build is None else code_covers(build.gpu_code, compute_capability)
    if build is None or held is None:
        return None
    if held.coverage is Coverage.PTX:
        return replace(held, reported=_reported(tf_version, compute_capability))
    return held


def code_covers(gpu_code: Sequence[str], compute_capability: str) -> ArchCoverage | None:
    """How a build with this code (``sm_80``, ``compute_90``) runs on a GPU with this compute capability (``8.6``).

    Returns:
        None when the capability is no number.
    """
    given = _CAPABILITY.fullmatch(compute_capability)
    if given is None:
        return None
    major, minor = int(given[1]), int(given[2])
    codes = [
        (hit[1], int(hit[2]), int(hit[3]), hit[0]) for hit in map(_CODE.fullmatch, gpu_code) if hit
    ]
    native = [code for code in codes if code[1] == major and code[2] <= minor]
    ptx = [code for code in codes if code[0] == "compute" and code[1:3] <= (major, minor)]
    if native:
        return ArchCoverage(Coverage.NATIVE, max(native, key=lambda code: code[1:3])[3])
    if ptx:
        return ArchCoverage(Coverage.PTX, max(ptx, key=lambda code: code[1:3])[3])
    return ArchCoverage(Coverage.NONE, None)


def _reported(tf_version: str, compute_capability: str) -> str | None:
    release = Version(tf_version).release[:2]
    for row in table(_TABLE)["reported"]:
        first, last = Version(row["first"]).release, Version(row["last"]).release
        if row["capability"] == compute_capability and first <= release <= last:
            text: str = row["says"]
            return text
    return None
