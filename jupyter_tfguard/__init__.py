"""jupyter-tfguard: the kernel's guard and flight recorder.

The doors that IPython and Jupyter knock on. Nothing heavy is imported before somebody does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    import os

__all__ = ["__version__", "load_ipython_extension", "resume_fit", "unload_ipython_extension"]


def resume_fit(model: Any, path: str | os.PathLike[str]) -> int:
    """Restore a model from the checkpoint that the guard saved when it stopped a fit.

    Args:
        model: Built and compiled like the one that was saved.
        path: Of the file ``tfguard-stop-….npz``.

    Returns:
        The epoch to go on with: ``model.fit(..., initial_epoch=resume_fit(model, path))``.

    Raises:
        CheckpointUnusable: The file does not belong to this model, or is damaged.
        ModelNotSupported: The model is not built, or has several optimizers.
    """
    from .guard.resume import resume_fit as resume

    return resume(model, path)


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
