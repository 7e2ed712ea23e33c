"""The IPython extension of kernels that were given the guard by ``jupyter tfguard enable``: starts it without a word."""

from __future__ import annotations

from typing import Any

from ..shield import shielded


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython at the start of the kernel, before any startup file."""
    with shielded("kernel start"):
        from .startup import autostart

        autostart(shell)
