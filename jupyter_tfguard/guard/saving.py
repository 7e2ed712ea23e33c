"""Finds the save that a cell was in when it was stopped: what was saved, and which file is incomplete now.

Keras, NumPy and pandas write in place: the file of a stopped save is incomplete, and an older file of that name is lost.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from .error import chain

# Function, the end of its file, its variable with the path, and the call as the user wrote it.
_SAVES = (
    ("save_weights", "/saving/saving_api.py", "filepath", "model.save_weights"),
    ("save_weights", "/engine/training.py", "filepath", "model.save_weights"),
    ("save_model", "/saving/saving_api.py", "filepath", "model.save"),
    ("save_model", "/saving/saving_lib.py", "filepath", "model.save"),
    ("save_model_to_hdf5", "/legacy_h5_format.py", "filepath", "model.save"),
    ("export", "/models/model.py", "filepath", "model.export"),
    ("save", "/saved_model/save.py", "export_dir", "tf.saved_model.save"),
    ("convert", "/lite/python/lite.py", "", "the TFLite conversion"),
    ("savez", "/lib/_npyio_impl.py", "file", "np.savez"),
    ("savez", "/lib/npyio.py", "file", "np.savez"),
    ("savez_compressed", "/lib/_npyio_impl.py", "file", "np.savez_compressed"),
    ("savez_compressed", "/lib/npyio.py", "file", "np.savez_compressed"),
    ("save", "/lib/_npyio_impl.py", "file", "np.save"),
    ("save", "/lib/npyio.py", "file", "np.save"),
    ("savetxt", "/lib/_npyio_impl.py", "fname", "np.savetxt"),
    ("to_csv", "/core/generic.py", "path_or_buf", "to_csv"),
    ("to_pickle", "/core/generic.py", "path", "to_pickle"),
    ("to_parquet", "/core/frame.py", "path", "to_parquet"),
    ("save", "/torch/serialization.py", "f", "torch.save"),
    ("dump", "/joblib/numpy_pickle.py", "filename", "joblib.dump"),
)
_KERAS = ("model.save", "model.save_weights", "model.export")
_SUFFIX = ".npz"
_PATH_LIMIT = 4096
_AT_FDCWD, _STATX_BTIME, _STATX_BYTES = -100, 0x800, 256
_MARGIN_SECONDS = (
    0.05  # file systems take timestamps from a clock that advances every few milliseconds
)


class Saving(NamedTuple):
    """A save that was stopped or refused.

    Attributes:
        call: As the user wrote it, such as ``model.save``.
        path: The file that is incomplete now; None if none is known.
        was_older: True if a file of that name existed before, which is lost; None if unknown.
    """

    call: str
    path: str | None
    was_older: bool | None = None

    def advice(self) -> str:
        """What was running, and what needs less memory."""
        if self.call == "the TFLite conversion":
            return (
                "The TFLite conversion builds the whole file in memory. "
                "Convert the model in a new kernel, without the data."
            )
        if self.call == "model.save":
            return (
                "model.save() was running, which can build the whole file in memory. "
                'model.save_weights("NAME.weights.h5") writes one weight after the other.'
            )
        if self.call in _KERAS:
            return f"{self.call}() was running: delete what you no longer need, then save again."
        return f"{self.call}() was running: save in smaller parts, or delete what you no longer need first."

    def incomplete(self) -> str:
        """Which file is incomplete, and whether it replaced another one; empty if none is."""
        if self.path is None:
            return ""
        lost = {
            True: " The older file of that name is lost.",
            False: "",
            None: " If there was an older file of that name, it is lost.",
        }
        return f"{self.path} is incomplete now, do not load it.{lost[self.was_older]}"


def stack(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of a running call, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def frames_of(error: BaseException | None) -> Iterator[FrameType]:
    """The frames in which an error and those before it were raised, innermost first.

    Keras removes its frames from tracebacks, but they remain the callers of those that are left. Frames of compiled
    modules such as h5py know no caller.
    """
    for one in chain(error):
        found = [frame for frame, _ in traceback.walk_tb(one.__traceback__)]
        for frame in reversed(found):
            yield from stack(frame)


def find_save(frames: Iterator[FrameType], since: float) -> Saving | None:
    """The outermost save among some frames; None if there is none.

    Args:
        frames: Innermost first.
        since: When the cell began, in Unix seconds: an older file was not written by this save.
    """
    found = None
    for frame in frames:
        name, file = frame.f_code.co_name, frame.f_code.co_filename.replace(os.sep, "/")
        for function, end, variable, call in _SAVES:
            if name == function and file.endswith(end):
                path = _incomplete(frame, variable, since)
                found = Saving(call, path, None if path is None else _is_older(path, since))
    return found


def _incomplete(frame: FrameType, variable: str, since: float) -> str | None:
    given = frame.f_locals.get(variable) if variable else None
    # Exact types: the methods of a subclass are the user's code.
    if type(given).__module__ == "pathlib" or type(given).__module__.startswith("pathlib."):
        given = str(given)
    if type(given) is not str or not given or len(given) > _PATH_LIMIT:
        return None
    for path in (given, given + _SUFFIX):
        try:
            seen = os.stat(path)
        except (OSError, ValueError):
            continue
        is_file = stat.S_ISREG(seen.st_mode)
        if is_file and seen.st_mtime >= since - _MARGIN_SECONDS:
            return os.path.abspath(path)
    return None


def _is_older(path: str, since: float) -> bool | None:
    """True if a file was created before `since`: opening it for writing keeps its time of birth. None if unknown.

    Source: statx(2); ``stx_btime`` is at byte 80, and bit 0x800 of the mask says that the file system has it.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        failed = ctypes.CDLL(None).statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, buffer)
    except (AttributeError, OSError):
        return None
    (mask,) = struct.unpack_from("<I", buffer)
    if failed or not mask & _STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("<qI", buffer, 80)
    return bool(seconds + nanoseconds / 1e9 < since - _MARGIN_SECONDS)
