"""The out-of-memory killer ended a process that the kernel had started; the kernel is still running."""

from __future__ import annotations

from ...units import human_bytes
from ..ending import oom_fact
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..memory_advice import FEWER_WORKERS
from ..rule import rule


@rule("child_oom_killed", needs=("cgroup.counters", "system_log"))
def child_oom_killed(seen: Evidence) -> Finding | None:
    """Memory ran out, and the operating system killed a process that the kernel had started, such as a data worker. The
    kernel itself still runs.

    A child of the kernel ended. The system log names it as a victim, or the kernel's memory cgroup counted an
    out-of-memory kill at that moment.
    """
    if not seen.kernel_alive:
        return None
    reported = (seen.server or {}).get("ended_children")
    ended = (
        [pid for pid in reported if type(pid) is int] if isinstance(reported, (list, tuple)) else []
    )
    named = [kill for kill in seen.system_log.oom_kills if kill.pid in ended]
    own = seen.own_group
    kills = own.rise("oom_kill_count") if own else None
    if not named and not (kills and ended):
        return None
    because = []
    if kills:
        because.append(
            Fact(
                Source.SERVER,
                f"The kernel's memory cgroup counted {kills} OOM kill{'s' if kills > 1 else ''}",
            )
        )
    because += [oom_fact(kill) for kill in named[:3]]
    pids = ", ".join(str(pid) for pid in ended[:5])
    because.append(
        Fact(Source.SERVER, f"The kernel's child process {pids} ended; the kernel is still running")
    )
    limit = seen.memory_limit()
    worker = next((kill.anonymous_bytes for kill in named if kill.anonymous_bytes), None)
    size = f" ({human_bytes(limit.size_bytes)}, {limit.name})" if limit else ""
    text = "Each worker process uses its own memory. Fewer workers, or fewer items at a time, need less."
    if worker:
        text += f" The killed process held {human_bytes(worker)}."
    return Finding(
        Confidence.CERTAIN if named else Confidence.LIKELY,
        title=f"Memory ran out{size}, and the operating system killed a child process of the kernel. The kernel is still running.",
        short_title="Child process out of memory",
        because=tuple(because),
        advice=(Advice(FEWER_WORKERS, text),),
        chips=("kernel still running",),
    )
