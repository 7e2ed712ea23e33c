"""The files that IPython runs at the start of every kernel, in its order: one that raises keeps the later ones from running.

Source: ``InteractiveShellApp._run_startup_files``, seen with IPython 8.39 and 9.18: all folders' files, sorted by full path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .environment import Environment

_SYSTEM_FOLDERS = ("/usr/local/etc/ipython", "/etc/ipython")


def files_before(machine: Environment, guard: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files that run before the guard's.

    Args:
        machine: Where the folders lie.
        guard: The guard's own file.
        environ: The environment of the kernel.
    """
    own = environ.get("IPYTHONDIR") or os.path.join(environ.get("HOME", "~"), ".ipython")
    folders = [
        Path(own).expanduser() / "profile_default" / "startup",
        guard.parent,
        *(machine.path(folder) / "startup" for folder in _SYSTEM_FOLDERS),
    ]
    found = {f for folder in folders for ending in ("*.py", "*.ipy") for f in folder.glob(ending)}
    return sorted((file for file in found if str(file) < str(guard)), key=str)


def syntax_error(file: Path) -> str | None:
    """Why Python cannot even begin with a file; None when it can, or the file is no plain Python."""
    if file.suffix != ".py":
        return None
    try:
        compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except SyntaxError as bad:
        return f"line {bad.lineno}: {bad.msg}"
    except (OSError, ValueError) as bad:
        return str(bad)
    return None
