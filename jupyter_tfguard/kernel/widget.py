"""``%tfguard panel``: the panel as a widget in a cell's output, for JupyterLab, VS Code, Colab and the classic Notebook.

anywidget, and with it ipywidgets, are imported when the first panel is asked for. Without them, and in front ends without
widgets, the output is the text of ``%tfguard status``.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ..shield import note_problem, shield
from ..units import is_known
from .session import GuardSession
from .status import status_text

STATIC = Path(__file__).parents[1] / "static"
_NAME_LENGTH = 40


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
    feed = session.panels.feed
    if hertz is not None:
        if not is_known(hertz):
            print("The rate must be finite.")
            return
        feed.set_rate(hertz)
    panel = widget_class(session, feed)
    feed.add(panel)
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
        state: Any = traitlets.Dict().tag(sync=True, to_json=lambda _, panel: panel._state())
        history: Any = traitlets.List().tag(sync=True, to_json=lambda _, panel: panel._history())

        def __init__(self, session: GuardSession, feed: Any) -> None:
            self._session = session
            self._feed = feed
            self._views: set[str] = set()
            self._was_opened = False
            super().__init__()
            self.on_msg(self._on_message)

        @property
        def is_closed(self) -> bool:
            """True once the widget itself was closed."""
            return self.comm is None

        @property
        def is_seen(self) -> bool:
            """False once all its views were closed, which is heard when no cell runs; true before the first was opened."""
            return not self._was_opened or bool(self._views)

        def tell(self, message: dict[str, Any]) -> None:
            """Send a message to the views."""
            self.send(message)

        @shield("%tfguard panel")
        def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
            kind = content.get("type") if isinstance(content, dict) else None
            view = str(content.get("view"))[:_NAME_LENGTH] if kind in ("opened", "closed") else ""
            if kind == "opened":
                self._was_opened = True
                self._views.add(view)
                self.tell({"type": "history", "rows": self._history()})
                self._feed.wake()
            elif kind == "closed":
                self._views.discard(view)

        def _state(self) -> dict[str, Any]:
            return self._session.panels.state.now()

        def _history(self) -> list[list[float | int | None]]:
            return self._session.panels.state.history()

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            found = super()._repr_mimebundle_(**kwargs)
            if isinstance(found, tuple):
                found[0]["text/plain"] = status_text(self._session)
            return found

    return TfGuardPanel
