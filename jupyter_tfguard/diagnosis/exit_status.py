"""What an exit code or a signal name means; the numbers are in ``catalog/exit_status.toml``."""

from __future__ import annotations

from dataclasses import dataclass

from .catalog import table, verified

_TABLE = "exit_status"
_SIGNALS = {row["name"]: row for row in table(_TABLE)["signal"]}
SIGNAL_NUMBERS: dict[str, int] = {name: row["number"] for name, row in _SIGNALS.items()}
_ENDS_A_PROGRAM = {"SIGILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGSEGV", "SIGTERM"}
_NAMES = {number: name for name, number in SIGNAL_NUMBERS.items()}
# Windows ends a process with the status of the uncaught exception, shown signed or unsigned.
_PROGRAMS: dict[int, str] = {row["code"]: row["says"] for row in table(_TABLE)["program"]}
_WINDOWS = {row["status"]: row for row in table(_TABLE)["windows"] if verified(row)}


@dataclass(frozen=True)
class ExitStatus:
    """How a process ended, as reported by a user or a program.

    Attributes:
        signal: Name of the signal; None for none.
        code: The exit code; None when only a signal was given.
        cause: The cause that follows from the status alone; None for none.
    """

    signal: str | None
    code: int | None
    cause: str | None

    @property
    def text(self) -> str:
        """``exit code 137, which means SIGKILL``."""
        if self.code is None:
            return f"ended by {self.signal}"
        if self.code in _PROGRAMS:
            return f"exit code {self.code}, {_PROGRAMS[self.code]}"
        return f"exit code {self.code}" + (f", which means {self.signal}" if self.signal else "")

    @property
    def by_itself(self) -> bool:
        """True for a code with which the program ended itself."""
        return bool(self.code) and self.signal is None and self.code not in _PROGRAMS


def exit_status(signal: str | None = None, code: int | None = None) -> ExitStatus | None:
    """The status that these values describe; None when both are None.

    Args:
        signal: ``SIGKILL``, ``KILL`` or ``9``; case does not matter.
        code: In the form of a shell (128 plus the signal), of Python (the negative signal) or of Windows.

    Raises:
        ValueError: There is no such signal.
    """
    name = None if signal is None else _signal_name(signal)
    if name is None and code is None:
        return None
    cause = None
    if name is None and code is not None:
        status = code & 0xFFFFFFFF
        if -64 <= code < 0:
            name = _NAMES.get(-code)
        elif 128 < code <= 128 + 64 and code not in _PROGRAMS:
            name = _NAMES.get(code - 128)
        elif status >= 0xC0000000:
            known = _WINDOWS.get(status, {})
            name, cause = known.get("signal"), known.get("cause")
    return ExitStatus(name, code, cause or _cause_of(name))


def passed_on_signal(code: int) -> str | None:
    """The signal of a child that a program passes on as its own exit code; None for a code that means no signal.

    A shell adds 128. Python's ``sys.exit(process.returncode)``, as in ``conda run``, results in 256 minus the signal. In
    that form only signals that end programs count, because 255 is also what -1 becomes.
    """
    name = _NAMES.get(code - 128) if 128 < code <= 128 + 31 else _NAMES.get(256 - code)
    return name if code <= 128 + 31 or name in _ENDS_A_PROGRAM else None


def _cause_of(signal: str | None) -> str | None:
    """The cause that follows from a signal alone; None for a signal that shows none, or whose row is not verified."""
    row = _SIGNALS.get(signal or "")
    if row is None or not verified(row):
        return None
    cause: str | None = row.get("cause")
    return cause


def _signal_name(given: str) -> str:
    text = given.strip().upper()
    if text.lstrip("-").isdigit():
        text = _NAMES.get(abs(int(text)), text)
    elif not text.startswith("SIG"):
        text = f"SIG{text}"
    if text not in SIGNAL_NUMBERS:
        raise ValueError(f"{given!r} is not a known signal. Examples: SIGKILL, KILL, 9.")
    return text
