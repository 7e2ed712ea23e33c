"""The exceptions that end a cell before the system would kill the kernel."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType

# IPython calls a method of this name instead of its own formatting.
RENDER = "_render_traceback_"
_FRAMES = 8
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NOT_USERS = (os.path.join("IPython", "core", "interactiveshell.py"),)

# IPython's name for the code of a file: ("Cell", "In[3]"); None for a real file.
CodeName = Callable[[str], tuple[str, str] | None]


class HostMemoryLimitReached(MemoryError):
    """The cell was stopped because host memory was about to run out. Variables and models are as they were.

    TensorFlow's autograph recreates errors from their text, so the text contains all information.
    """

    # Autograph keeps the class of an error only if its __init__ is this one.
    __init__ = Exception.__init__

    def _render_traceback_(self) -> list[str]:
        """A plain traceback for IPython, whose own formatter reads every file on the stack: tens of MiB."""
        return plain_traceback(self)


class ThreadStopped(HostMemoryLimitReached):
    """The same in another thread than the cell's, where Python raises it without a text."""

    def __str__(self) -> str:
        return super().__str__() or "tfguard stopped this thread, because memory was nearly full."


class HostMemoryLimitInterrupt(KeyboardInterrupt):
    """The same for a cell that caught :class:`HostMemoryLimitReached` and continued to fill memory."""

    def _render_traceback_(self) -> list[str]:
        return plain_traceback(self)


def is_refusal(error: BaseException | None) -> bool:
    """True if an allocation was refused: for the errors of Python, NumPy, TensorFlow and pandas, and for any error raised
    while one of them was handled. Closing the file of a save that ran out of memory often fails too.
    """
    return any(_is_of_refusal(one) for one in chain(error))


def _is_of_refusal(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    if "ParserError" in names:
        return "out of memory" in str(error)
    return bool(names & {"MemoryError", "ResourceExhaustedError"})


def is_handled() -> bool:
    """True while the code that runs handles the exception of an earlier stop: a second one interrupts its cleanup."""
    return isinstance(sys.exc_info()[1], (HostMemoryLimitReached, HostMemoryLimitInterrupt))


def is_bare(error: BaseException) -> bool:
    """True for a MemoryError without a text, which Python itself raises if an allocation is refused."""
    return type(error) is MemoryError and not error.args


def plain_traceback(error: BaseException, code_name: CodeName = lambda file: None) -> list[str]:
    """The last frames and the text, without chained errors; a group as Python prints it. Also releases the frames' variables."""
    if holds_group(error):
        whole = traceback.format_exception(type(error), error, error.__traceback__)
        release_frames(error)
        return "".join(whole).splitlines()
    frames = [
        one
        for one in traceback.extract_tb(error.__traceback__)
        if not one.filename.startswith(_PACKAGE) and not one.filename.endswith(_NOT_USERS)
    ]
    lines = [
        "Traceback (most recent call last):",
        *(_lines(frame, code_name) for frame in frames[-_FRAMES:]),
    ]
    lines.append(f"{type(error).__name__}: {error}")
    release_frames(error)
    return [line.rstrip("\n") for line in lines]


def _lines(frame: traceback.FrameSummary, code_name: CodeName) -> str:
    (lines,) = traceback.format_list([frame])
    name = code_name(frame.filename)
    return lines if name is None else lines.replace(f'File "{frame.filename}"', " ".join(name), 1)


def release_frames(error: BaseException | None) -> None:
    """Clear the variables of ended functions in an error's tracebacks, which frees arrays without other references."""
    for one in chain(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            _clear(frame)


def cut_tracebacks(error: BaseException | None) -> None:
    """Remove the tracebacks of an error that was shown. Their functions hold what they close over, cleared or not."""
    release_frames(error)
    for one in chain(error):
        one.__traceback__ = None


def holds_group(error: BaseException | None) -> bool:
    """True for a group of errors, and for an error that was raised while one was handled: IPython lets Python print these."""
    return any(
        kind.__name__ == "BaseExceptionGroup"
        for one in _contexts(error)
        for kind in type(one).__mro__
    )


def printed(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that are printed with it, which a plain traceback leaves out."""
    if error is not None and hasattr(error, RENDER) and not holds_group(error):
        return iter((error,))
    return chain(error, is_printed=True)


def chain(error: BaseException | None, *, is_printed: bool = False) -> Iterator[BaseException]:
    """The error, its causes and contexts, and the members of groups.

    Args:
        error: The error.
        is_printed: Without the contexts that ``raise ... from`` hides.
    """
    seen: set[int] = set()
    ahead = [error]
    while ahead:
        one = ahead.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        is_hidden = is_printed and one.__suppress_context__
        context = None if is_hidden else one.__context__
        ahead += [one.__cause__, context, *getattr(one, "exceptions", ())]


def _contexts(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__context__


def _clear(frame: FrameType | None) -> None:
    # Keras removes its frames from tracebacks, but the remaining frames keep them alive as their callers.
    with contextlib.suppress(RuntimeError):  # this function and its callers are still running
        while frame is not None:
            frame.clear()
            _renew_copy(frame)
            frame = frame.f_back


def renew_copies(frame: FrameType | None) -> None:
    """Let functions that run drop the values that their variables had when a profile function, or a stop, read them.

    Args:
        frame: The innermost of them.
    """
    while frame is not None:
        _renew_copy(frame)
        frame = frame.f_back


def _renew_copy(frame: FrameType) -> None:
    # Before Python 3.13 a frame keeps the dictionary that f_locals returned, until it is read again.
    _ = frame.f_locals
