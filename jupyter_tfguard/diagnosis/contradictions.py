"""What speaks against the best finding, where facts of another kind do: an exit status, a counter, a neighbour's kill.

What contradicts one cause alone is told by its own rule.
"""

from __future__ import annotations

import dataclasses

from .evidence import Evidence
from .finding import Confidence, Fact, Finding, Source
from .signs import Role

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


def weighed_against(seen: Evidence, best: Finding) -> Finding:
    """The finding with what speaks against it; where a reported exit status does, it is no longer certain."""
    found = _contradictions(seen, best)
    if not found:
        return best
    sure = best.confidence
    if seen.pasted is not None and sure is Confidence.CERTAIN:
        sure = Confidence.LIKELY
    return dataclasses.replace(best, against=(*best.against, *found), confidence=sure)


def _contradictions(seen: Evidence, best: Finding) -> tuple[Fact, ...]:
    if seen.pasted is not None:
        return _of_reported_status(seen, best)
    if seen.kernel_alive:
        return ()
    found = []
    own = seen.own_group
    kills = own.rise("oom_kill_count") if own else None
    if kills and seen.exit_was_seen and seen.exit_signal != "SIGKILL":
        text = (
            f"Its memory cgroup counted {kills} OOM kill{'s' if kills > 1 else ''} at that time; these end a process by "
            "SIGKILL, so another one of the group was meant"
        )
        found.append(Fact(Source.SERVER, text))
    fatal = next((s for s in seen.story.signs if s.role is Role.FATAL or s.row.aborts), None)
    if fatal is not None and best.cause == "sys_exit" and seen.exit_code == 0:
        text = f"A line with which programs give up stands in its native text: {fatal.line.message[:300]}"
        found.append(Fact(Source.KERNEL, text))
    return tuple(found)


def _of_reported_status(seen: Evidence, best: Finding) -> tuple[Fact, ...]:
    assert seen.pasted is not None
    status = seen.pasted.status
    if status is None or best.cause in _ORDERLY:
        return ()
    if status.code == 0:
        return (
            Fact(
                Source.TEXT,
                "As reported: exit code 0, with which no program ends that died of this",
            ),
        )
    fitting = _SIGNALS.get(best.cause)
    if status.signal is not None and fitting is not None and status.signal not in fitting:
        return (
            Fact(
                Source.TEXT,
                f"As reported: {status.text}; this cause ends a process by {' or '.join(fitting)}",
            ),
        )
    return ()
