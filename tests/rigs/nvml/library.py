"""Builds the stand-in for NVIDIA's management library, and says how a process is made to take it for the real one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
SCENARIO = "TFGUARD_NVML_SCENARIO"


def build(folder: Path) -> Path | None:
    """Compile the stand-in into `folder`, which comes back; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    sources = [FOLDER / "scenario.c", FOLDER / "nvml_standin.c"]
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-pthread"]
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, *options, "-o", library, *sources], check=True, timeout=120)
    return folder


def empty_cuda(folder: Path) -> Path:
    """Compile a library that is called as CUDA's and does nothing: a process that loads it may be one that uses a card."""
    source, library = folder / "cuda.c", folder / "libcuda.so.1"
    source.write_text("")
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    return library


def environ(library: Path, scenario: Path) -> dict[str, str]:
    """Variables with which a process finds the stand-in in folder `library`, showing the file `scenario`."""
    return {"LD_LIBRARY_PATH": str(library), SCENARIO: str(scenario)}
