"""Do several OpenMP runtimes lie where one process would load them together."""

from __future__ import annotations

import re
from pathlib import Path

from ...collectors.packages import find_package
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "OpenMP runtimes"
OVERRIDE_VARIABLE = "KMP_DUPLICATE_LIB_OK"
# libiomp5.so, libomp.so.5, libomp-a1b2c3.so, libgomp-a1b2c3.so.1.0.0, libiomp5md.dll, libomp.dylib
_RUNTIME = re.compile(r"lib(iomp5(?:md)?|omp|gomp)(?:[-.][\w.-]*)?\.(?:so|dylib|dll)\b")
_PLACES = ("*/", "*/lib/", "*.libs/", "*/.dylibs/")


def check(machine: Environment) -> CheckResult | None:
    """Two of Intel's and LLVM's stop the process ("OMP: Error #15"); GNU's beside them only costs time.

    Whether they meet depends on what a notebook imports, so this is a warning at most.
    """
    if machine.build is None:
        return None
    found = _runtimes(machine)
    listed = ", ".join(str(path) for path in found)
    llvm = [path for path in found if "gomp" not in path.name]
    override = machine.environ.get(OVERRIDE_VARIABLE, "")
    if override.lower() in ("1", "true", "yes", "on"):
        text = (
            f"{OVERRIDE_VARIABLE}={override} lets several OpenMP runtimes run side by side: no abort, "
            "but slow threads or wrong numbers"
        )
        return CheckResult(NAME, Status.WARNING, text, f"unset {OVERRIDE_VARIABLE}")
    if len(llvm) > 1:
        text = (
            f"{len(llvm)} copies of Intel's or LLVM's runtime are installed: {', '.join(map(str, llvm))}. "
            'A notebook that loads two of them is stopped with "OMP: Error #15"'
        )
        return CheckResult(NAME, Status.WARNING, text, _fix(machine))
    if not found:
        return CheckResult(NAME, Status.OK, "none beside TensorFlow's own threads")
    return CheckResult(NAME, Status.OK, f"no two that exclude each other ({listed})")


def _runtimes(machine: Environment) -> list[Path]:
    found: dict[Path, Path] = {}
    places = [machine.prefix / "lib", machine.prefix / "Library" / "bin"]
    for folder in machine.import_folders:
        places += [p for pattern in _PLACES for p in folder.glob(pattern)]
    for place in places:
        for path in sorted(place.glob("lib*omp*")):
            if _RUNTIME.match(path.name) and path.is_file():
                found.setdefault(path.resolve(), path)  # conda links libomp.so to libiomp5.so
    return list(found.values())


def _fix(machine: Environment) -> str | None:
    if (machine.prefix / "conda-meta").is_dir():
        return f"conda install -p {machine.prefix} nomkl"
    by_pip = find_package("intel-openmp", machine.import_folders)
    return machine.pip("uninstall", "intel-openmp") if by_pip else None
