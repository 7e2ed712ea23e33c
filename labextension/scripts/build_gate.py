"""Builds the native part of the guard: ``python build_gate.py [--target x86_64|aarch64] [--out FILE]``.

Without a target: for this machine, with cc, gcc, clang or zig. With a target: with zig (PyPI: ziglang), for glibc 2.28 and later.
Without a compiler nothing is built, and the guard stops no cell.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "jupyter_tfguard/guard"
SOURCES, LIBRARY = FOLDER / "native", FOLDER / "_gate.so"
TARGETS = ("x86_64", "aarch64")
GLIBC = "2.28"
FLAGS = (
    *("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"),
    # C++ exceptions of operator new pass through; backtrace() reads the same tables.
    *("-fexceptions", "-fasynchronous-unwind-tables", "-Wl,-z,relro,-z,now"),
)
_LIBRARIES = ("-lpthread", "-ldl")


def compilers() -> list[list[str]]:
    """Commands that compile C for this machine, best first."""
    found = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else []
    found += [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    return found + zig()


def zig() -> list[list[str]]:
    """The command of zig's C compiler, if it is installed."""
    if importlib.util.find_spec("ziglang") is not None:
        return [[sys.executable, "-m", "ziglang", "cc"]]
    return [[path, "cc"]] if (path := shutil.which("zig")) else []


def is_possible_here() -> bool:
    """True on a system for which the library exists."""
    is_linux, is_glibc = sys.platform.startswith("linux"), platform.libc_ver()[0] == "glibc"
    return is_linux and is_glibc and platform.machine() in TARGETS


def build(target: str | None = None, library: Path = LIBRARY) -> str | None:
    """Compile. Returns None, or one sentence: why not."""
    if target is None and not is_possible_here():
        return "it is for Linux with glibc on x86-64 and aarch64 only"
    commands = compilers() if target is None else zig()
    options: Sequence[str] = ()
    if target is not None:
        options = ("-target", f"{target}-linux-gnu.{GLIBC}", "-s")
    reason = "no C compiler was found" if target is None else "it needs the package ziglang"
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    new = library.with_name(f"{library.name}.{os.getpid()}")
    for command in commands:
        done = subprocess.run(
            [*command, *options, *FLAGS, "-o", str(new), *sources, *_LIBRARIES],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            os.replace(new, library)  # a running kernel keeps the old file
            return None
        reason = f"{command[0]} failed: {done.stderr.strip()[:2000]}"
    new.unlink(missing_ok=True)
    return reason


def sentence(reason: str | None) -> str:
    """What a build prints."""
    return (
        f"The guard's native library was {'built' if reason is None else f'not built: {reason}'}."
    )


def main() -> int:
    """Build, and say on one line what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--out", type=Path, default=LIBRARY)
    chosen = parser.parse_args()
    reason = build(chosen.target, chosen.out)
    print(sentence(reason))
    return 0 if reason is None else 1


if __name__ == "__main__":
    raise SystemExit(main())
