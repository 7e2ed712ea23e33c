"""Parses the Python stacks of all threads in faulthandler's format."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..decode import dict_of, list_of

LIMIT_BYTES = 256 * 1024
# Key of the recording's header: how a watcher requests the stacks, see kernel/capture/stacks.py.
HEADER_KEY = "stacks"
_FRAME_LIMIT = 100
# The stack of a thread with user code contains none of these.
_SERVICE_PATHS = ("/ipykernel/", "/jupyter_tfguard/", "/IPython/core/history.py")

# Files of tf.data and Keras that call the user's generator or data set, and the folders of both.
_FEEDS = (
    "from_generator_op.py",
    "generator_data_adapter.py",
    "py_dataset_adapter.py",
    "data_adapter.py",
)
_LIBRARIES = ("/tensorflow/", "/keras/", "/tf_keras/")
_STANDARD_LIBRARY = re.compile(r"/lib(?:64)?/python3\.\d+/(?!site-packages/|dist-packages/)")

# Thread 0x00007f3a [name] (most recent call first):      Current thread 0x...      Stack (most recent call first):
_THREAD = re.compile(
    r"^(?:Thread|Current thread|Main thread) (0x[0-9a-f]{1,16})\b.{0,80}\(most recent call first\)"
)
#   File "/usr/lib/python3.11/threading.py", line 320 in wait
_FRAME = re.compile(
    r'^\s+File "(?P<file>[^"]{1,400})", line (?P<line>\d{1,7}) in (?P<name>.{1,200})$'
)


class Frame(NamedTuple):
    """One function call of a stack."""

    file: str
    line: int
    name: str


def stacks_of(lines: list[str]) -> dict[str, list[Frame]]:
    """Frames per thread, innermost first. The key is the thread as faulthandler names it, ``0x00007f3a``."""
    found: dict[str, list[Frame]] = {}
    frames: list[Frame] = []
    for line in lines:
        head = _THREAD.match(line)
        if head:
            frames = found.setdefault(head[1], [])
        elif (frame := _FRAME.match(line)) and len(frames) < _FRAME_LIMIT:
            frames.append(Frame(frame["file"], int(frame["line"]), frame["name"]))
    return found


def feeding(stacks: dict[str, list[Frame]]) -> list[Frame] | None:
    """The stack, innermost frame first, of a thread in a generator or data set of the user; None if there is none."""
    for frames in stacks.values():
        files = [frame.file.replace("\\", "/") for frame in frames]
        called = [i for i, file in enumerate(files) if file.rsplit("/", 1)[-1] in _FEEDS]
        if called and any(_is_users(file) for file in files[: called[0]]):
            return frames
    return None


def waits_in_library(frames: list[Frame]) -> bool:
    """True if the innermost frames are of TensorFlow or Keras, apart from the standard library's."""
    files = (frame.file.replace("\\", "/") for frame in frames)
    inner = next((file for file in files if not _STANDARD_LIBRARY.search(file)), "")
    return _of_library(inner)


def _is_users(file: str) -> bool:
    return not _of_library(file) and not _STANDARD_LIBRARY.search(file)


def _of_library(file: str) -> bool:
    return any(part in file for part in _LIBRARIES)


def user_first(lines: list[str], main_thread: str | None) -> list[str]:
    """Sort the stacks: the main thread, then threads with user code, then the kernel's service threads.

    Args:
        lines: Lines of the stacks.
        main_thread: Name of the main thread in `lines`; None = unknown.
    """
    parts: list[list[str]] = []
    for line in lines:
        if _THREAD.match(line) or not parts:
            parts.append([])
        if line:
            parts[-1].append(line)
    parts = [part for part in parts if part]
    by_rank = sorted(parts, key=lambda part: _rank(part, main_thread))
    found: list[str] = []
    for part in by_rank:
        head = (
            part[0].replace("Thread", "Main thread", 1)
            if _rank(part, main_thread) == 0
            else part[0]
        )
        found += [*([""] if found else []), head, *part[1:]]
    return found


def _rank(part: list[str], main_thread: str | None) -> int:
    head = _THREAD.match(part[0])
    if head is not None and head[1] == main_thread:
        return 0
    frames = stacks_of(part).values()
    files = [frame.file.replace("\\", "/") for stack in frames for frame in stack]
    return 2 if any(name in file for file in files for name in _SERVICE_PATHS) else 1


def thread_name(ident: int) -> str:
    """faulthandler's name of the thread with this :attr:`threading.Thread.ident`.

    Source: CPython, ``write_thread_id`` in Python/traceback.c: the number of hexadecimal digits of an unsigned long.
    """
    return f"0x{ident:016x}"


def claims(header: dict[str, Any] | None) -> dict[str, Any]:
    """The header's entry about stacks; empty without a guard."""
    return dict_of((header or {}).get(HEADER_KEY))


def service_threads(header: dict[str, Any] | None) -> tuple[int, ...]:
    """Native ids of the kernel's service threads, self-reported by the kernel; empty if unknown."""
    found = list_of(claims(header).get("service_threads"))
    return tuple(t for t in found[:100] if type(t) is int)
