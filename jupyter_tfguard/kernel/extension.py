"""``%load_ext tfguard`` and ``%unload_ext tfguard``."""

from __future__ import annotations

from typing import Any

from .._version import __version__
from ..shield import shield
from . import startup
from .status import state_line


@shield("%load_ext tfguard")
def load(shell: Any) -> None:
    """Start the guard if it does not run, and print one line about it in any case."""
    if not startup.is_kernel(shell):
        print(
            f"tfguard {__version__}: guards Jupyter kernels only; there is nothing to do in a terminal."
        )
        return
    session = startup.start(shell)
    if session is None:
        reason = startup.why_off(shell)
        print(f"tfguard {__version__}: switched off. {reason}.")
        return
    print(state_line(session))


@shield("%unload_ext tfguard")
def unload(shell: Any) -> None:
    """Undo everything; the kernel is then as it would be without us."""
    startup.stop(shell)
