"""A memory limit of a container, batch job or service ended the kernel.

The rule does not match: a host-wide kill that happens to hit a limited group (no limit was hit), the kill of a neighbour in
the same group, and a plain ``kill -9`` near the limit (no OOM kill was counted). Source: cgroup-v2 and cgroup-v1/memory
documentation of Linux; which counter rises in which group was measured on Linux 6.1 and 6.18.
"""

from __future__ import annotations

from ...memory.limits import Limit, LimitKind
from ...units import human_bytes
from ..ending import TextEvidence, exit_fact, oom_fact, starter_facts, text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..group import Group
from ..line_sizes import group_limit_bytes, named_bytes, pod_limit_bytes
from ..memory import (
    came_near_limit,
    children_fact,
    growth_fact,
    host_was_short,
    peak_chips,
    peak_fact,
)
from ..memory_advice import memory_advice
from ..rule import CONSEQUENCES_OF_A_KILL, rule

# The killed process is usually the largest of its group.
_LARGE_FRACTION = 0.5
# A watcher polls once a second, and every five seconds when memory is short.
_RECENT_SECONDS = 15.0


@rule(
    "cgroup_oom",
    needs=("exit.status", "cgroup.counters", "system_log"),
    outranks=("host_oom", *CONSEQUENCES_OF_A_KILL),
)
def cgroup_oom(seen: Evidence) -> Finding | None:
    """The kernel used all of the memory that its container, batch job or service may use, and the operating system
    killed it.

    The kernel ended by SIGKILL, its memory cgroup counted an out-of-memory kill, and the limit of that cgroup was reached.
    The system log can also name the kernel as the victim. It is not reported when the whole machine was short of memory,
    when a neighbour in the same cgroup was killed, or after a plain `kill -9`.
    """
    if (text := text_evidence(seen, "cgroup_oom")) is not None:
        return _of_text(seen, text)
    if seen.kernel_alive or seen.exit_signal not in ("SIGKILL", None) or seen.exit_code is not None:
        return None
    log = seen.system_log.kill_of_kernel
    own = seen.own_group
    kills = own.rise("oom_kill_count") if own else None
    limited = _limit_that_was_hit(seen)
    by_log = log is not None and log.by_limit is True
    if (log is not None and log.by_limit is False) or seen.system_log.kill_of_others is not None:
        return None
    if not by_log and not (kills and limited):
        return None
    limit = limited.limit_bytes if limited and limited.limit_bytes else None
    if limit is None and (known := seen.memory_limit()) and known.kind is LimitKind.CGROUP:
        limit = known.size_bytes
    if limit is None and seen.pasted is not None:
        limit = group_limit_bytes([*seen.story.lines, *seen.kernel_log.lines])
    because = [exit_fact(seen)] if seen.exit_signal else []
    if kills:
        because.append(_counter_fact(seen, kills, limited))
    if log is not None:
        because.append(oom_fact(log))
    alone = (seen.server or {}).get("ended_neighbours")
    victim_known = by_log or (alone == [] and _was_large(seen, limit) and _counted_lately(seen))
    if kills and not by_log and alone == []:
        because.append(Fact(Source.SERVER, "No other process in the group ended at that time"))
    because += starter_facts(seen)
    steady = seen.growth.fact if seen.growth is not None else None
    held = (peak_fact(seen), children_fact(seen), growth_fact(seen), steady)
    because += [fact for fact in held if fact]
    against: tuple[Fact, ...] = ()
    if came_near_limit(seen) is False:
        low = (
            "The memory in use was never seen near the limit; it may have risen between two samples"
        )
        against = (Fact(Source.SERVER, low),)
    elif kills and not by_log and not _was_large(seen, limit, claimed=True):
        other = "The kernel held less than half of the limit; a short-lived process between two samples may have been killed instead"
        against = (Fact(Source.SERVER, other),)
    # A v1 group counts only that it was full. Self-reported memory of the kernel never makes a finding certain.
    limit_seen = _limit_that_was_hit(seen, claimed=False) is not None
    watched = seen.exit_was_seen and (by_log or (bool(kills) and limit_seen and victim_known))
    certain = watched or seen.system_log.kill_is_certain
    size = f" ({human_bytes(limit)})" if limit else ""
    return Finding(
        Confidence.CERTAIN if certain else Confidence.LIKELY,
        title=f"{seen.who} reached the memory limit of its container{size} and the operating system killed it.",
        short_title="Container memory limit" + (f", {human_bytes(limit)}" if limit else ""),
        because=tuple(because),
        against=against,
        advice=_advice(seen, limit),
        chips=("SIGKILL by the out-of-memory killer", *peak_chips(seen)),
    )


def _was_large(seen: Evidence, limit: int | None, *, claimed: bool = False) -> bool:
    """True if the kernel held much of the limit; `claimed`: also by its own samples, if no watcher ran."""
    peak = seen.peak(claimed=claimed)
    return limit is not None and peak is not None and peak >= _LARGE_FRACTION * limit


def _counted_lately(seen: Evidence) -> bool:
    """True if the counters were read so shortly before the death that their rise belongs to it."""
    before = seen.host("time")
    return before is not None and seen.died - before < _RECENT_SECONDS


def _advice(seen: Evidence, limit: int | None) -> tuple[Advice, ...]:
    found = memory_advice(seen, Limit(limit, LimitKind.CGROUP) if limit else seen.memory_limit())
    if seen.pasted is None or limit is not None:
        return found
    raising = Advice(
        "Or raise the limit.",
        "It is set by `docker run --memory`, by `resources.limits.memory` of a pod, or by the request of a batch job.",
    )
    return (*found[:2], raising)


def _of_text(seen: Evidence, text: TextEvidence) -> Finding:
    """For a message of a batch system, container runtime or platform, with the sizes that it gives."""
    used, limit = (named_bytes(text.details, name) for name in ("used", "limit"))
    limit = limit or pod_limit_bytes(seen.story.lines)
    platform = text.details.get("platform")
    where = f"{platform} allows" if platform else "its job or container may use"
    if limit is None:
        title = f"The program used all of the memory that {where} and was ended."
    elif used is None:
        title = f"The program used more memory than the {human_bytes(limit)} that {where}, and was ended."
    else:
        title = f"The program used {human_bytes(used)} where {where} {human_bytes(limit)}, and was ended."
    more_title = (
        "Or ask for more memory."
        if limit is None
        else f"Or ask for more than {human_bytes(limit)}."
    )
    asking = (
        "Choose a runtime with more memory, if the platform offers one. A restart of the session frees what earlier cells hold."
        if platform
        else "The request is in the job script or the pod manifest. A batch system shows how much memory was used: "
        "`sacct -j JOB -o ReqMem,MaxRSS` in Slurm, `condor_history -l JOB` in HTCondor, `qacct -j JOB` in Grid Engine, the job summary in LSF."
    )
    return text.finding(
        title=title,
        short_title="Memory limit of the job or container"
        if not platform
        else f"Memory limit of {platform}",
        advice=(*memory_advice(seen, seen.memory_limit())[:2], Advice(more_title, asking)),
    )


def _limit_that_was_hit(seen: Evidence, *, claimed: bool = True) -> Group | None:
    """The group whose limit was the reason.

    v2 reports it directly. v1 reports only that the limit was hit, so use must also have been near it, and the machine not
    short of memory. `claimed`: whether self-reported use counts, as in :func:`~..memory.came_near_limit`.
    """
    for group in seen.groups:
        near = came_near_limit(seen, claimed=claimed)
        sure = group.version == 2 or (near and not host_was_short(seen))
        if group.hit_limit and sure:
            return group
    return None


def _counter_fact(seen: Evidence, kills: int, limited: Group | None) -> Fact:
    hits = limited.rise("failcnt_count") if limited else None
    text = "Its memory cgroup counted 1 OOM kill"
    if kills > 1:  # when a whole group is killed, one victim is counted twice
        text = f"Its memory cgroup counted OOM kills (increase of {kills})"
    if hits:
        text += f" and {hits:,} limit hit{'s' if hits > 1 else ''}"
    elif limited is not None and limited.was_full:
        text += f" and was full, at its limit of {human_bytes(limited.limit_bytes)}"
    if limited is not None and not limited.own:
        text += f" (the limit belongs to the parent group {limited.path})"
    source = Source.SERVER if seen.server else Source.KERNEL
    return Fact(source, f"{text} between the last sample and the crash")
