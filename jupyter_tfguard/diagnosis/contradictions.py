"""A reported exit status that does not fit the cause that a pasted log names."""

from __future__ import annotations

import dataclasses

from .exit_status import ExitStatus
from .finding import Confidence, Fact, Finding, Source

_ORDERLY = ("no_crash", "sys_exit", "terminated_by_user_or_manager", "unknown")
# Signals with which each cause ends a process; a launcher may turn any of them into an exit code of its own.
_SIGNALS = {
    "host_oom": ("SIGKILL",),
    "cgroup_oom": ("SIGKILL",),
    "sigkill_unattributed": ("SIGKILL",),
    "glibc_abort_heap_corruption": ("SIGABRT", "SIGSEGV"),
    "segfault_native": ("SIGSEGV", "SIGBUS"),
    "bus_error_shm": ("SIGBUS",),
    "illegal_instruction": ("SIGILL", "SIGABRT"),
    "libiomp_duplicate": ("SIGABRT",),
    "tf_check_failed": ("SIGABRT", "SIGTRAP", "SIGILL", "SIGSEGV"),
}


def weighed_against(status: ExitStatus | None, best: Finding) -> Finding:
    """The finding; where the reported exit status contradicts it, with that fact and no longer certain."""
    text = None if status is None else _contradiction(status, best.cause)
    if text is None:
        return best
    sure = Confidence.LIKELY if best.confidence is Confidence.CERTAIN else best.confidence
    against = (*best.against, Fact(Source.TEXT, f"As reported: {text}"))
    return dataclasses.replace(best, against=against, confidence=sure)


def _contradiction(status: ExitStatus, cause: str) -> str | None:
    fitting = _SIGNALS.get(cause)
    if cause in _ORDERLY:
        return None
    if status.code == 0:
        return "exit code 0, with which no program ends that died of this"
    if status.signal is not None and fitting is not None and status.signal not in fitting:
        return f"{status.text}; this cause ends a process by {' or '.join(fitting)}"
    return None
