"""A log without a recording: what somebody pasted, and what they know besides."""

from __future__ import annotations

from dataclasses import dataclass

from .exit_status import ExitStatus


@dataclass(frozen=True)
class Pasted:
    """A pasted log.

    Attributes:
        text: What the program printed, or any part of it, in any wrapping.
        kernel_log: Lines of the operating system's log; kills and faults that stand in `text` count as well.
        status: How it ended, if that is known.
    """

    text: str
    kernel_log: str = ""
    status: ExitStatus | None = None
