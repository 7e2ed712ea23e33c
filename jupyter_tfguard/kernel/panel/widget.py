"""``%tfguard panel``: the panel as a widget in a cell's output, for JupyterLab, VS Code, Colab and the classic Notebook.

anywidget and ipywidgets are imported when the first panel is shown. Without them, and in front ends without widgets,
the output is the text of ``%tfguard status``.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ...shield import note_problem, shield
from ..session import GuardSession
from ..status import status_text
from .panel import Panel

STATIC = Path(__file__).parents[2] / "static"


def show(session: GuardSession) -> None:
    """Show the kernel's panel in the output of the running cell."""
    from IPython.display import display

    widget_class = _widget_class()
    if widget_class is None:
        print(status_text(session))
        return
    panel = session.panel
    if panel is not None and panel.widget.comm is None:  # the user's code closed it
        panel.stop()
        panel = None
    if panel is None:
        panel = session.panel = Panel(session, functools.partial(widget_class, session))
    else:
        panel.widget.send_state()
    display(panel.widget)


@functools.cache
def _widget_class() -> Any:
    """The widget class; None if anywidget is missing or the checkout was not built."""
    try:
        import anywidget  # enables Colab's widget manager by itself
        import traitlets

        code = (STATIC / "widget.js").read_text(encoding="utf-8")
        style = (STATIC / "widget.css").read_text(encoding="utf-8")
    except (ImportError, OSError) as missing:
        note_problem("%tfguard panel", f"shown as text: {missing}")
        return None

    class TfGuardPanel(anywidget.AnyWidget):
        """`state` and `history` are read when a front end requests them; changes are sent as messages."""

        _esm = code
        _css = style
        state: Any = traitlets.Dict().tag(sync=True, to_json=lambda _, own: own._panel.state.now())
        history: Any = traitlets.List().tag(
            sync=True, to_json=lambda _, own: own._panel.state.history()
        )

        def __init__(self, session: GuardSession, panel: Panel) -> None:
            self._session = session
            self._panel = panel
            super().__init__()
            self.on_msg(self._on_message)

        @shield("%tfguard panel")
        def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
            if isinstance(content, dict) and content.get("type") == "opened":
                self._panel.opened()

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            found = super()._repr_mimebundle_(**kwargs)
            if isinstance(found, tuple):
                found[0]["text/plain"] = status_text(self._session)
            return found

    return TfGuardPanel
