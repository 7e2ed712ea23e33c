"""What the running cell has started beside its own code: threads, tasks, queued work, processes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from .beside_texts import runs_on_text
from .blame import Blame, who_fills
from .error import HostMemoryLimitReached
from .queued import QueuedWork
from .tasks import CellTasks
from .worker_processes import Children
from .workers import CellThreads

# After a stop, for what the cell has started to end.
_ENDS_SECONDS, _POLL_SECONDS = 1.0, 0.01
_taken_back = partial(HostMemoryLimitReached, "tfguard stopped the cell that ordered this work")


class CellWork:
    """The work of the running cell.

    Args:
        namespace: The globals of the user's cells.

    Attributes:
        namespace: The globals of the user's cells.
        threads: Its threads.
        tasks: Its tasks on the main thread's loop.
        queued: Its work that waits in thread pools.
        children: Its worker processes.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.threads = CellThreads(namespace)
        self.tasks = CellTasks(namespace)
        self.queued = QueuedWork(_taken_back)
        self.children = Children(_taken_back)

    def begin(self) -> None:
        """Note what exists at the start of a cell; takes some microseconds."""
        self.threads.begin()
        self.tasks.begin()
        self.queued.begin()
        self.children.begin()

    def cancel_scheduled(self) -> None:
        """Cancel the tasks, callbacks and timers of the cell. Call from the main thread."""
        self.tasks.cancel()
        self.threads.cancel_timers()

    def runs_on(self) -> str:
        """A sentence about what works beside the cell's own code for longer than a moment; empty if nothing does."""
        ends = time.monotonic() + _ENDS_SECONDS
        while True:
            threads, count = self.threads.at_work(), self.children.count()
            if not threads and not count:
                return ""
            if time.monotonic() > ends:
                return runs_on_text([one.name for one in threads], count)
            time.sleep(_POLL_SECONDS)

    def goes_on(self) -> bool:
        """True if something that this or an earlier cell has started may work after the cell."""
        return self.tasks.has_notebook() or self.threads.may_work_later()

    def who_fills(self, seconds: float) -> Blame:
        """Who fills memory now; takes at most about `seconds`. Call from another thread than the main thread."""
        return who_fills(
            self.threads, self.namespace, seconds=seconds, is_awaiting=self.tasks.is_awaiting
        )
