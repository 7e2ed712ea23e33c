"""``%tfguard panel``: the panel as a widget in a cell's output, for JupyterLab, VS Code, Colab and the classic Notebook.

anywidget, and with it ipywidgets, are imported when the first panel is asked for. Without them, and in front ends without
widgets, the output is the text of ``%tfguard status``.
"""

from __future__ import annotations

import functools
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..shield import note_problem, shield
from .status import status_text
from .widget_views import Views

if TYPE_CHECKING:
    from .session import GuardSession

STATIC = Path(__file__).parents[1] / "static"
_NAME_LENGTH = 40


def in_colab() -> bool:
    """True in Google Colab, where messages from threads are reported not to arrive (colabtools issue 3373)."""
    return "google.colab" in sys.modules


def show(session: GuardSession, hertz: float | None) -> None:
    """Put a panel into the output of the running cell.

    Args:
        session: The guard of this kernel.
        hertz: Messages a second, for all its panels; None leaves it as it is.
    """
    from IPython.display import display

    widget_class = _widget_class()
    if widget_class is None:
        print(status_text(session))
        return
    controls = session.controls
    if hertz is not None:
        answer = controls.answer({"request": "rate", "hertz": hertz})
        if answer["status"] != "ok":
            print(answer["message"])
            return
    panel = widget_class(session, controls.feed)
    controls.offer_comm()
    controls.feed.add(panel)
    display(panel)


@functools.cache
def _widget_class() -> Any:
    """The class of our widgets; None where they cannot be made: no anywidget, or a checkout that was not built."""
    try:
        import anywidget  # enables Colab's manager of such widgets by itself
        import traitlets

        code = (STATIC / "widget.js").read_text(encoding="utf-8")
        style = (STATIC / "widget.css").read_text(encoding="utf-8")
    except (ImportError, OSError) as missing:
        note_problem("%tfguard panel", f"shown as text: {missing}")
        return None

    class TfGuardPanel(anywidget.AnyWidget):
        """The panel of one kernel. `state` and `history` are read when a front end asks for them; news are messages."""

        _esm = code
        _css = style
        # What its views call it where they do not answer by its own messages.
        panel: Any = traitlets.Unicode().tag(sync=True)
        state: Any = traitlets.Dict().tag(sync=True, to_json=lambda _, panel: panel._state())
        history: Any = traitlets.List().tag(sync=True, to_json=lambda _, panel: panel._history())

        def __init__(self, session: GuardSession, feed: Any) -> None:
            self._session = session
            self._feed = feed
            self._views = Views()
            self._owes_history = False
            super().__init__(panel=uuid.uuid4().hex)
            self.on_msg(self._on_message)

        @property
        def name(self) -> str:
            """Unlike that of any other."""
            return str(self.panel)

        @property
        def is_closed(self) -> bool:
            """True once the widget itself was closed."""
            return self.comm is None

        @property
        def is_seen(self) -> bool:
            """As :attr:`Views.is_seen`."""
            return self._views.is_seen

        def heard(self, view: str) -> None:
            """As :meth:`Views.heard`."""
            if self._views.heard(view[:_NAME_LENGTH]):
                self._owes_history = True

        def fed(self, seconds: float) -> None:
            """As :meth:`Views.fed`."""
            self._views.fed(seconds)

        def tell(self, message: dict[str, Any]) -> None:
            """Send a message to the views; before it, what one that is back has missed."""
            if self._owes_history:
                self._owes_history = False
                self.send({"type": "history", "rows": self._history()})
            self.send(message)

        @shield("%tfguard panel")
        def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
            kind = content.get("type") if isinstance(content, dict) else None
            view = str(content.get("view"))[:_NAME_LENGTH] if kind in ("opened", "closed") else ""
            if kind == "opened":
                self._views.opened(view)
                self._owes_history = False
                self.tell({"type": "history", "rows": self._history()})
                self._feed.wake()
            elif kind == "closed":
                self._views.closed(view)
            elif kind == "control":
                self.tell({"type": "answer"} | self._session.controls.answer(content))

        def _state(self) -> dict[str, Any]:
            state = self._session.controls.state
            return state.now() | {"hertz": self._feed.hertz}

        def _history(self) -> list[list[float | int | None]]:
            return self._session.controls.state.history()

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            found = super()._repr_mimebundle_(**kwargs)
            if isinstance(found, tuple):
                found[0]["text/plain"] = status_text(self._session)
            return found

    return TfGuardPanel
