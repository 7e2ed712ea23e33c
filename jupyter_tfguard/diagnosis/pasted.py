"""A log without a recording: the pasted text, and what the user knows in addition."""

from __future__ import annotations

from dataclasses import dataclass

from .exit_status import ExitStatus


@dataclass(frozen=True)
class Pasted:
    """A pasted log.

    Attributes:
        text: What the program printed, or any part of it, wrapped or not.
        kernel_log: Lines of the operating system's log; kills and faults in `text` count as well.
        status: How the program ended, if known.
    """

    text: str
    kernel_log: str = ""
    status: ExitStatus | None = None
