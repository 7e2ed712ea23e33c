"""The importable name ``tfguard``, for ``%load_ext tfguard``. The code is in `jupyter_tfguard`."""

from jupyter_tfguard import (
    __version__,
    checkpoint,
    estimate,
    find_batch_size,
    fit,
    load_ipython_extension,
    resume,
    unload_ipython_extension,
)

__all__ = [
    "__version__",
    "checkpoint",
    "estimate",
    "find_batch_size",
    "fit",
    "load_ipython_extension",
    "resume",
    "unload_ipython_extension",
]
