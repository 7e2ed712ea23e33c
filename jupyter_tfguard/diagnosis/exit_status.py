"""What an exit code or the name of a signal stands for. Source: signal(7), bash(1), Microsoft's NTSTATUS values."""

from __future__ import annotations

from dataclasses import dataclass

SIGNAL_NUMBERS = {
    "SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8,
    "SIGKILL": 9, "SIGUSR1": 10, "SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15,
    "SIGXCPU": 24, "SIGXFSZ": 25, "SIGSYS": 31,
}  # fmt: skip
_NAMES = {number: name for name, number in SIGNAL_NUMBERS.items()}
# Windows ends a process with the status of the exception that nobody caught; shown signed or unsigned.
_NTSTATUS = {
    0xC0000005: "SIGSEGV",  # access violation
    0xC000001D: "SIGILL",  # illegal instruction
    0xC0000006: "SIGBUS",  # in-page error: a mapped file could not be read
    0xC000013A: "SIGINT",  # Ctrl-C
    0xC0000409: "SIGABRT",  # fast fail: abort(), a stack or heap check
    0xC0000374: "SIGABRT",  # heap corruption
}
_NTSTATUS_CAUSES = {
    0xC00000FD: "stack_overflow",
    0xC0000374: "glibc_abort_heap_corruption",
    0xC0000017: "cpu_alloc_failure",  # no memory
    0xC000012D: "cpu_alloc_failure",  # commitment limit
    0xC0000135: "abi_mismatch",  # a library was not found
    0xC0000139: "abi_mismatch",  # an entry point was not found
}
# What a signal alone says of the cause; others say nothing.
_SIGNAL_CAUSES = {
    "SIGKILL": "sigkill_unattributed",
    "SIGSEGV": "segfault_native",
    "SIGBUS": "segfault_native",
    "SIGILL": "illegal_instruction",
    "SIGTERM": "terminated_by_user_or_manager",
    "SIGHUP": "terminated_by_user_or_manager",
    "SIGINT": "terminated_by_user_or_manager",
    "SIGXCPU": "terminated_by_user_or_manager",
}


@dataclass(frozen=True)
class ExitStatus:
    """How a process ended, as somebody reported it.

    Attributes:
        signal: Its name, None for none.
        code: The number, None when only a signal was named.
        cause: What that alone says of the cause; None for nothing.
    """

    signal: str | None
    code: int | None
    cause: str | None

    @property
    def text(self) -> str:
        """``exit code 137, which stands for SIGKILL``."""
        if self.code is None:
            return f"ended by {self.signal}"
        return f"exit code {self.code}" + (
            f", which stands for {self.signal}" if self.signal else ""
        )


def exit_status(signal: str | None = None, code: int | None = None) -> ExitStatus | None:
    """What is known of the end; None for nothing.

    Args:
        signal: ``SIGKILL``, ``KILL``, ``9``; in any case.
        code: As a shell (128 and the signal), as Python (the signal, negative) or as Windows gives it.

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
        elif 128 < code <= 128 + 64:
            name = _NAMES.get(code - 128)
        elif status >= 0xC0000000:
            name, cause = _NTSTATUS.get(status), _NTSTATUS_CAUSES.get(status)
    return ExitStatus(name, code, cause or _SIGNAL_CAUSES.get(name or ""))


def _signal_name(given: str) -> str:
    text = given.strip().upper()
    if text.lstrip("-").isdigit():
        text = _NAMES.get(abs(int(text)), text)
    elif not text.startswith("SIG"):
        text = f"SIG{text}"
    if text not in SIGNAL_NUMBERS:
        raise ValueError(
            f"{given!r} is no signal that is known here; write SIGKILL, KILL or 9 for instance."
        )
    return text
