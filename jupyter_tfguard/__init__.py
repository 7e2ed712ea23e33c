"""jupyter-tfguard: the kernel's guard and flight recorder.

The doors that IPython and Jupyter knock on. Nothing heavy is imported before somebody does.
"""

from __future__ import annotations

from typing import Any

from ._version import __version__

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tfguard``: start the guard in this kernel, or say that it is there already."""
    from .kernel.startup import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext tfguard``: undo everything the guard did in this kernel."""
    from .kernel.startup import unload

    unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-tfguard"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    # Asked by Jupyter Server only, which has all of it imported already.
    from .server.extension import TfGuardExtension

    return [{"module": "jupyter_tfguard.server.extension", "app": TfGuardExtension}]
