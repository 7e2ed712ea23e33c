"""Advice from the tables about the TensorFlow build, the driver and the GPU that a bundle or log names; empty without one.

The sentences are about published builds. They do not apply to a TensorFlow that the user built.
"""

from __future__ import annotations

import re

from ..decode import dict_of, text_of
from .catalog.cuda import minimum_driver, newest_family
from .catalog.gpu_arch import Coverage, arch_covered, family_of
from .catalog.tensorflow import TensorFlowBuild, build_of, builds
from .evidence import Evidence

# ... compatible with compute capability 12.0a. CUDA kernels will be jit-compiled ...     ... compute capability: 7.5
_CAPABILITY = re.compile(r"compute capability:? (?P<number>\d{1,2}\.\d)")
# Possibly insufficient driver version: 470.82.1      kernel reported version is: 535.54.3      libcuda reported version is: ...
_DRIVER = re.compile(
    r"(?:driver version|reported version is): ?(?P<number>\d{3}(?:\.\d{1,4}){1,2})\b"
)


def recorded_build(seen: Evidence) -> TensorFlowBuild | None:
    """The build of the TensorFlow version in the recording; None if there is no version, or it is not in the table."""
    version = text_of(dict_of(seen.header.get("versions")).get("tensorflow"))
    return None if version is None else build_of(version)


def _named(seen: Evidence, pattern: re.Pattern[str], word: str) -> str | None:
    lines = (line.text for line in seen.story.lines if word in line.text)
    return next((hit["number"] for hit in map(pattern.search, lines) if hit), None)


def which_builds_run(seen: Evidence) -> str:
    """Which published builds contain code for the GPU that a line names; empty when no line names one."""
    capability = _named(seen, _CAPABILITY, "compute capability")
    if capability is None:
        return ""
    found = [(build.version, arch_covered(build.version, capability)) for build in builds()]
    native = [version for version, held in found if held and held.coverage is Coverage.NATIVE]
    ptx = [held for _, held in found if held and held.coverage is Coverage.PTX]
    family = family_of(capability)
    known = f" ({family})" if family is not None else ""
    newest = found[0][0]
    if native and native[0] == newest:
        text = f"published builds since {native[-1]} contain code for it."
    elif native:
        text = f"{native[0]} is the newest published build that contains code for it."
    elif ptx:
        text = f"no published build up to {newest} contains machine code for it; the driver must compile PTX."
    else:
        text = f"no published build from {found[-1][0]} to {newest} contains code for it."
    warning = next((held.reported for held in ptx if held.reported), None) if not native else None
    return f"This GPU has compute capability {capability}{known}: {text}" + (
        f" {warning}" if warning else ""
    )


def which_driver_fits(seen: Evidence) -> str:
    """The driver that the recorded build needs, and which CUDA the driver in a line supports; empty if both are unknown."""
    here = _named(seen, _DRIVER, "version")
    build = recorded_build(seen)
    needed = None if build is None else minimum_driver(build.cuda_build_version)
    texts = []
    if build is not None and needed is not None:
        texts.append(
            f"TensorFlow {build.version} is built with CUDA {build.cuda_build_version}, which needs driver {needed.driver} or newer."
        )
    family = None if here is None else newest_family(here)
    if family is not None:
        texts.append(f"Driver {here} supports CUDA {family} and older.")
        older = [b.version for b in builds() if b.cuda_build_version.split(".")[0] == str(family)]
        if older and older[0] != builds()[0].version:
            texts.append(f"{older[0]} is the newest published TensorFlow built with CUDA {family}.")
    return " ".join(texts)


def cudnn_package(built: str) -> str | None:
    """The pip requirement for a cuDNN that works with a program built with this cuDNN version (``9.3.0``).

    None when no build in the table was tested with it.
    """
    series = ".".join(built.split(".")[:2])
    for build in builds():
        if build.tested is not None and build.tested.cudnn == series:
            major = int(series.split(".")[0])
            name = next((need.name for need in build.and_cuda if "cudnn" in need.name), None)
            return None if name is None else f"{name}>={series},<{major + 1}"
    return None
