"""Which views of a panel are still there: a page that is reloaded or closed does not say so.

While it is fed, a view that is looked at says every 15 seconds that it is there, on the control channel, by the server or by its
page's own connection, or by a comm on a subshell: ways on which it is heard while a cell runs. One that was heard so and then
keeps silent is gone, or hidden. Where there is no such way (Colab) nothing follows from silence, and the view is kept.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

SILENT_SECONDS = 50.0
_VIEW_LIMIT = 50


@dataclass(slots=True)
class _View:
    """One view.

    Attributes:
        was_heard: On a way that is heard while a cell runs.
        silent_seconds: For so long it was fed since it was last heard.
    """

    was_heard: bool = False
    silent_seconds: float = 0.0

    @property
    def is_there(self) -> bool:
        return not self.was_heard or self.silent_seconds < SILENT_SECONDS


class Views:
    """The views of one panel, by the names that they give themselves. Threads may call at the same time."""

    def __init__(self) -> None:
        self._views: dict[str, _View] = {}
        self._was_seen = False
        self._lock = threading.Lock()

    @property
    def is_seen(self) -> bool:
        """True while a view is there, and until the first one was."""
        with self._lock:
            return not self._was_seen or any(view.is_there for view in self._views.values())

    def opened(self, name: str) -> None:
        """A view tells that it was made, by a message that is read once no cell runs."""
        with self._lock:
            self._take(name)

    def heard(self, name: str) -> bool:
        """A view says that it is there, on a way that is heard while a cell runs. True if it had counted as gone."""
        with self._lock:
            view = self._take(name)
            was_gone = not view.is_there
            view.was_heard, view.silent_seconds = True, 0.0
            return was_gone

    def closed(self, name: str) -> None:
        """A view tells that it was taken away."""
        with self._lock:
            self._views.pop(name, None)

    def fed(self, seconds: float) -> None:
        """The views were sent something while a cell runs; so long after what was sent before."""
        with self._lock:
            for view in self._views.values():
                view.silent_seconds += seconds

    def _take(self, name: str) -> _View:
        self._was_seen = True
        if name not in self._views and len(self._views) >= _VIEW_LIMIT:
            gone = (name for name, view in self._views.items() if not view.is_there)
            del self._views[next(gone, next(iter(self._views)))]
        return self._views.setdefault(name, _View())
