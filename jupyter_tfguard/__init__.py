"""jupyter-tfguard: a guard and flight recorder for Jupyter kernels.

The entry points of IPython and Jupyter. Heavy imports happen only when an entry point is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    import os

    from .predict.answer import Answer, BatchChoice

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


def checkpoint(model: Any, optimizer: Any = None) -> None:
    """Save this model if the guard stops the running cell. For training loops: of a ``fit`` it is done without a call.

    Call it in the cell of the loop, before the loop or in it, for each model that is trained. Nothing is written unless
    the cell is stopped. Then weights, optimizer and the number of steps are saved in one file, and the message names it.
    Does nothing in a kernel without the guard.

    Args:
        model: A model of Keras.
        optimizer: Trains ``model.trainable_variables``; None for the one that the model was compiled with.
    """
    from .kernel.current import current

    session = current()
    if session is not None:
        session.stop.keep(model, optimizer)


def resume(model: Any, path: str | os.PathLike[str], optimizer: Any = None) -> int:
    """Restore a model from the checkpoint that the guard saved when it stopped a fit or a training loop.

    Args:
        model: Built and compiled like the saved model.
        path: Path of the file ``tfguard-stop-….npz``.
        optimizer: The optimizer of a training loop; None for the one that the model was compiled with.

    Returns:
        The epoch to resume with: ``model.fit(..., initial_epoch=resume(model, path))``. Of a training loop, the number
        of steps that were made.

    Raises:
        CheckpointUnusable: The file does not belong to this model, or is damaged.
        ModelNotSupported: The model is not built, or has several optimizers.
    """
    from .guard.resume import restore_training

    return restore_training(model, path, optimizer)


def estimate(
    model: Any, x: Any = None, y: Any = None, *, measure: bool = False, **options: Any
) -> Answer:
    """Estimate the memory that ``model.fit`` will need on the CPU or one GPU. The model is unchanged.

    Args:
        model: A built and compiled model of Keras 3.
        x, y, **options: The arguments of ``fit``, such as ``batch_size`` and ``validation_data``.
        measure: Measure some steps in a child process instead of simulating one; takes about half a minute. Always done
            on a GPU.

    Returns:
        The need in bytes as a range, by part; whether it fits; the largest batch size that should fit; what to change.
        A notebook shows it with a bar.

    Raises:
        CannotEstimate: The model trains on several devices or in several processes, or the batch size is not known.
    """
    from .predict.estimate import estimate as answer

    return answer(model, {"x": x, "y": y} | options, measure=measure)


def find_batch_size(model: Any, x: Any = None, y: Any = None, **options: Any) -> BatchChoice:
    """Find the largest batch size of ``model.fit`` that fits into memory, by training copies in child processes.

    Args:
        model: A built and compiled model of Keras 3. It is unchanged afterwards.
        x, y, **options: The arguments of ``fit``.

    Returns:
        The batch size, the bytes it needs, and the trials. A batch that is too large for a trial, which needs a second
        TensorFlow, is extrapolated.

    Raises:
        CannotEstimate: The model trains on several devices or in several processes.
    """
    from .kernel.progress import ProgressLine
    from .predict.batch_size import find_batch_size as search

    with ProgressLine() as line:
        return search(model, {"x": x, "y": y} | options, show=line.show)


def fit(
    model: Any, x: Any = None, y: Any = None, *, auto_batch: bool = False, **options: Any
) -> Any:
    """``model.fit``. With `auto_batch` it first finds the largest batch size that fits, and prints it.

    A larger batch means fewer updates in each epoch: the learning rate may have to change with it.

    Args:
        model: A built and compiled model of Keras 3.
        x, y, **options: The arguments of ``fit``. With `auto_batch` the size found replaces ``batch_size``.
        auto_batch: Find the batch size. The data must be arrays: a dataset has its batches already.

    Returns:
        The history of ``model.fit``.

    Raises:
        CannotEstimate: No batch size fits or can be tried; nothing was trained.
    """
    arguments = {"x": x, "y": y} | options
    if auto_batch:
        from .kernel.progress import ProgressLine
        from .predict.batch_size import largest_batch_size

        with ProgressLine() as line:
            arguments["batch_size"] = largest_batch_size(model, arguments, show=line.show)
    return model.fit(**arguments)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tfguard``: start the guard in this kernel, or print that it is already loaded."""
    from .kernel.startup import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext tfguard``: undo everything the guard did in this kernel."""
    from .kernel.startup import unload

    unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-tfguard"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    # Called only by Jupyter Server, which has already imported the dependencies.
    from .server.extension import TfGuardExtension

    return [{"module": "jupyter_tfguard.server.extension", "app": TfGuardExtension}]
