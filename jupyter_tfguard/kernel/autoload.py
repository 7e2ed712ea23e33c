"""The IPython extension that starts the guard, without output, in kernels enabled by ``jupyter tfguard enable``."""

from __future__ import annotations

from typing import Any

from ..shield import shielded


def load_ipython_extension(shell: Any) -> None:
    """Start the guard. IPython calls this at kernel start, before any startup file."""
    with shielded("kernel start"):
        from .startup import autostart

        autostart(shell)
