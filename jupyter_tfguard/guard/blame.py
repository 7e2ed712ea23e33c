"""Which fills memory: the running cell, or a thread that an earlier cell started."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any, NamedTuple

from ..collectors.process_activity import Wait, thread_wait
from ..collectors.thread_work import fault_count, thread_work
from ..threads import frames_of_others
from .activity import Activity, activity, is_waiting, waits_for_pool
from .workers import CellThreads, is_of_pool

_WINDOW_SECONDS, _SHORTEST_SECONDS = 0.012, 0.003
# Of the pages touched in that time: from how many on a thread fills memory (huge pages count once), and the cell is to blame.
_FILLS_PAGES, _CELL_FRACTION = 8, 0.25
# Their functions fill memory in native threads, while the Python thread waits for them.
_NATIVE = (f"{os.sep}tensorflow{os.sep}", f"{os.sep}keras{os.sep}", f"{os.sep}tf_keras{os.sep}")


class Blame(NamedTuple):
    """Who fills.

    Attributes:
        earlier: Threads of earlier cells that fill.
        of_cell: Threads that work for the running cell, without the main thread.
        is_cell: Whether the running cell fills.
    """

    earlier: list[threading.Thread]
    of_cell: list[threading.Thread]
    is_cell: bool


def who_fills(
    threads: CellThreads, namespace: Mapping[str, Any], *, seconds: float, is_awaiting: bool
) -> Blame:
    """Watch the threads for some milliseconds, unless no thread of an earlier cell is at work.

    Args:
        threads: The threads of the running cell.
        namespace: The globals of the user's cells.
        seconds: How long at most; they are watched for one window at least.
        is_awaiting: Whether the cell awaits something on the kernel's loop.
    """
    frames = frames_of_others()
    main = threading.main_thread()
    main_frame = frames.get(main.ident or 0)
    earlier = [
        one
        for one in threads.earlier()
        if activity(frames.get(one.ident or 0), namespace) in (Activity.NOTEBOOK, Activity.LIBRARY)
    ]
    of_cell = threads.started()
    if is_awaiting or waits_for_pool(main_frame):
        # The threads of a pool may be older than the cell that waits for their work.
        of_cell += [one for one in earlier if is_of_pool(one)]
        earlier = [one for one in earlier if not is_of_pool(one)]
    if not earlier:
        return Blame([], of_cell, is_cell=True)
    is_idle = _is_idle(main_frame)
    pages, all_pages = _touched_pages(
        [main, *of_cell, *earlier], None if is_idle else main, seconds
    )
    filling = [
        one
        for one in earlier
        if pages[one] >= _FILLS_PAGES or _runs_native(frames.get(one.ident or 0))
    ]
    if not filling:
        return Blame([], of_cell, is_cell=True)
    by_cell = pages[main] + sum(pages[one] for one in of_cell)
    if by_cell >= max(_FILLS_PAGES, _CELL_FRACTION * all_pages):
        return Blame(filling, of_cell, is_cell=True)
    # Native threads may fill for the cell as well.
    is_native = any(_runs_native(frames.get(one.ident or 0)) for one in (main, *of_cell))
    return Blame(filling, of_cell, is_cell=is_native and not is_idle)


def _touched_pages(
    threads: list[threading.Thread], until_run: threading.Thread | None, seconds: float
) -> tuple[dict[threading.Thread, int], int]:
    """Pages that each thread touches first, and all threads, in a window that is long enough to see some.

    Args:
        threads: The threads.
        until_run: The window is long enough for this one to run, too. None: none.
        seconds: The longest time.
    """
    before, all_before = {one: thread_work(one.native_id) for one in threads}, fault_count()
    pages, has_run = dict.fromkeys(threads, 0), set[threading.Thread | None]([None])
    ends = time.monotonic() + seconds
    while True:
        time.sleep(min(max(seconds, _SHORTEST_SECONDS), _WINDOW_SECONDS))
        for one, work in before.items():
            if work is not None and (now := thread_work(one.native_id)) is not None:
                pages[one] = now.fault_count - work.fault_count
                if now.cpu_seconds > work.cpu_seconds:
                    has_run.add(one)
        # Native threads of TensorFlow are none of `threads`.
        all_pages = max(sum(pages.values()), fault_count() - all_before)
        is_enough = until_run in has_run and all_pages >= 4 * _FILLS_PAGES
        if is_enough or time.monotonic() > ends:
            return pages, all_pages


def _runs_native(frame: FrameType | None) -> bool:
    if frame is None or is_waiting(frame):
        return False
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _NATIVE):
            return True
        frame = frame.f_back
    return False


def _is_idle(frame: FrameType | None) -> bool:
    """True if the main thread waits, in the cell or in the kernel's loop."""
    return (
        frame is None
        or is_waiting(frame)
        or thread_wait(os.getpid(), threading.main_thread().native_id or 0) is Wait.SLEEP
    )
