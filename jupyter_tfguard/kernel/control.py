"""What others may ask of the guard while a cell runs: its state, the rate of its panels, and to go on feeding one.

A Jupyter server asks on ipykernel's control channel, which has a thread of its own, in the way of ipykernel's own
``usage_request``, and so does a page without our server part, on its own connection to the kernel. A comm on a subshell
(ipykernel 7) is answered too. A widget's own message is answered as well, but only once no cell runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..control_words import HERE, RATE, REPLY, REQUEST, STATE
from ..shield import shield
from ..units import is_known
from .busy_again import BusyAgain

if TYPE_CHECKING:
    from ..metrics import Sample
    from .panel_state import PanelState
    from .session import GuardSession
    from .widget_feed import WidgetFeed

COMM_TARGET = "jupyter_tfguard.control"


class Controls:
    """Answers requests, and holds what feeds the panels of this kernel.

    Args:
        session: The guard of the kernel.
    """

    def __init__(self, session: GuardSession) -> None:
        self._session = session
        self._kernel: Any = getattr(session.shell, "kernel", None)
        self._state: PanelState | None = None
        self._feed: WidgetFeed | None = None
        self._busy_again = BusyAgain(self._kernel, lambda: session.cells.is_running)

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
            from .widget import in_colab
            from .widget_feed import WidgetFeed

            self._feed = WidgetFeed(self.state.now, threaded=not in_colab())
        return self._feed

    def start(self) -> None:
        """Answer on the control channel."""
        handlers = getattr(self._kernel, "control_handlers", None)
        if isinstance(handlers, dict):
            handlers[REQUEST] = self._on_request

    def offer_comm(self) -> None:
        """Answer a comm too; a front end opens it on a subshell, so that it is answered while a cell runs."""
        manager = getattr(self._kernel, "comm_manager", None)
        if manager is not None:
            manager.register_target(COMM_TARGET, self._on_comm)

    def stop(self) -> None:
        """Answer no more, and end the panels."""
        handlers = getattr(self._kernel, "control_handlers", None)
        if isinstance(handlers, dict) and handlers.get(REQUEST) == self._on_request:
            del handlers[REQUEST]
        manager = getattr(self._kernel, "comm_manager", None)
        if manager is not None and manager.targets.get(COMM_TARGET) == self._on_comm:
            manager.unregister_target(COMM_TARGET, self._on_comm)
        self._busy_again.stop()
        if self._feed is not None:
            self._feed.stop()
        if self._state is not None:
            self._state.close()

    def leave_child(self) -> None:
        """In a forked child: the panels are the parent's."""
        self._busy_again.leave_child()
        if self._feed is not None:
            self._feed.leave_child()

    def set_busy(self, busy: bool) -> None:
        """Tell that a cell has begun, or that the last one has ended."""
        if self._feed is not None:
            self._feed.set_busy(busy)

    def sampled(self, sample: Sample) -> None:
        """The kernel has sampled itself. Before there is a panel, nothing is foreseen."""
        if self._feed is not None:
            self.state.sampled(sample)

    def progressed(self) -> None:
        """A fit has come further."""
        if self._feed is not None:
            self._feed.progressed()

    def answer(self, content: Any) -> dict[str, Any]:
        """The answer to one request.

        ``{"request": "state"}``; ``{"request": "rate", "hertz": 4}``, 0 pauses; ``{"request": "here", "panel": ..., "view": ...}``
        from a view that is looked at, answered with the state.
        """
        wanted = content.get("request") if isinstance(content, dict) else None
        if wanted == STATE:
            return {"status": "ok", "state": self.state.now() | {"hertz": self._rate()}}
        if wanted == RATE:
            hertz = content.get("hertz")
            if isinstance(hertz, bool) or not isinstance(hertz, (int, float)):
                return _refused("The rate is a number of messages a second, or 0 to pause.")
            if not is_known(hertz):
                return _refused("The rate must be finite.")
            return {"status": "ok", "hertz": self.feed.set_rate(float(hertz))}
        if wanted == HERE:
            panel, view = content.get("panel"), content.get("view")
            known = isinstance(panel, str) and isinstance(view, str)
            if not known or self._feed is None or not self._feed.heard(panel, view):
                return _refused("There is no such panel in this kernel.")
            return self.answer({"request": STATE})
        return _refused("The guard in the kernel knows three requests: state, rate, here.")

    def _rate(self) -> float | None:
        """None while there is no panel."""
        return None if self._feed is None else self._feed.hertz

    @shield("a request on the control channel")
    def _on_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        answer = self.answer(parent.get("content"))
        self._kernel.session.send(stream, REPLY, answer, parent, ident)
        self._busy_again.soon()

    @shield("a request by a comm")
    def _on_comm(self, comm: Any, message: dict[str, Any]) -> None:
        comm.on_msg(shield("a request by a comm")(lambda asked: comm.send(self._answer_to(asked))))
        self._busy_again.for_a_while()

    def _answer_to(self, message: dict[str, Any]) -> dict[str, Any]:
        return self.answer((message.get("content") or {}).get("data"))


def _refused(sentence: str) -> dict[str, Any]:
    return {"status": "error", "message": sentence}
