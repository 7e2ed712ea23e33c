"""A line of progress that is replaced in place: in notebooks, also when nbclient runs them, in IPython and in plain Python."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

_RETURN = "\r"


class ProgressLine:
    """Shows one line at a time, in a ``with`` statement. The last one stays.

    In a kernel it is an output that is updated, so a saved notebook holds one line. In a terminal it is overwritten. Where
    neither works, as in a file, only the last line is written.
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = ""
        self._in_kernel = _in_kernel()
        self._on_terminal = not self._in_kernel and sys.stdout.isatty()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._last and not self._in_kernel:
            print("" if self._on_terminal else self._last, flush=True)

    def show(self, text: str) -> None:
        """Replace the line."""
        if text == self._last:
            return
        if self._on_terminal:
            padded = text.ljust(len(self._last))
            print(f"{_RETURN}{padded}", end="", flush=True)
        elif self._in_kernel:
            self._update(text)
        self._last = text

    def _update(self, text: str) -> None:
        from IPython.display import display

        content = {"text/plain": text}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _in_kernel() -> bool:
    """True if outputs can be updated: this process is a kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
