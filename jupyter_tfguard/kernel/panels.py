"""What feeds the panels of this kernel in the outputs of its cells (``%tfguard panel``)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..metrics import Sample
    from .panel_state import Guarded, PanelState
    from .widget_feed import WidgetFeed


def _in_colab() -> bool:
    """True in Google Colab, where messages from threads are reported not to arrive (colabtools issue 3373)."""
    return "google.colab" in sys.modules


class Panels:
    """Makes state and feed for the first panel, and hands on what happens in the kernel. Before that it costs nothing.

    Args:
        session: The guard of the kernel.
    """

    def __init__(self, session: Guarded) -> None:
        self._session = session
        self._state: PanelState | None = None
        self._feed: WidgetFeed | None = None

    @property
    def state(self) -> PanelState:
        """Reads what a panel shows; made when it is first asked for."""
        if self._state is None:
            from .panel_state import PanelState

            self._state = PanelState(self._session)
        return self._state

    @property
    def feed(self) -> WidgetFeed:
        """Feeds the panels; made when it is first asked for."""
        if self._feed is None:
            from .widget_feed import WidgetFeed

            self._feed = WidgetFeed(self.state.now, threaded=not _in_colab())
        return self._feed

    def stop(self) -> None:
        """End the panels."""
        if self._feed is not None:
            self._feed.stop()
        if self._state is not None:
            self._state.close()

    def leave_child(self) -> None:
        """In a forked child: the panels are the parent's."""
        if self._feed is not None:
            self._feed.leave_child()

    def set_busy(self, busy: bool) -> None:
        """A cell has begun, or the last one has ended."""
        if self._feed is not None:
            self._feed.set_busy(busy)

    def sampled(self, sample: Sample) -> None:
        """The kernel has sampled itself. Before there is a panel, there is no forecast."""
        if self._feed is not None:
            self.state.sampled(sample)

    def progressed(self) -> None:
        """A fit has come further."""
        if self._feed is not None:
            self._feed.progressed()
