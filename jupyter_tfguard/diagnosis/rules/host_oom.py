"""The whole machine ran out of memory, and its out-of-memory killer ended the kernel.

The machine-wide counter alone proves nothing, because a kill of any process raises it. The rule needs a system log line
for this process, or a kill counted in the cgroup of this kernel while no limit was hit and the machine was short of memory.
"""

from __future__ import annotations

from ...units import human_bytes
from ..ending import exit_fact, oom_fact
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..memory import (
    growth_fact,
    host_was_short,
    lowest_available,
    machine_limit,
    peak_chips,
    peak_fact,
)
from ..memory_advice import memory_advice
from ..rule import CONSEQUENCES_OF_A_KILL, rule


@rule(
    "host_oom",
    needs=("exit.status", "cgroup.counters", "system_log"),
    outranks=CONSEQUENCES_OF_A_KILL,
)
def host_oom(seen: Evidence) -> Finding | None:
    """The whole machine ran out of memory, and the operating system killed the kernel to free some.

    The system log names the kernel as the victim. Or the kernel ended by SIGKILL, a kill was counted in its own cgroup, no
    limit of that cgroup was reached, and the machine was short of memory. The counter of the whole machine alone proves
    little: any process can raise it.
    """
    if seen.kernel_alive or seen.exit_signal not in ("SIGKILL", None) or seen.exit_code is not None:
        return None
    log = seen.system_log.kill_of_kernel
    if (log is not None and log.by_limit) or seen.system_log.kill_of_others is not None:
        return None
    total, available = seen.host("host_total_bytes"), lowest_available(seen)
    short = host_was_short(seen)
    own = seen.own_group
    own_kills = own.rise("oom_kill_count") if own else None
    limit_hit = any(group.hit_limit for group in seen.groups)
    if log is None:
        counted = own_kills or (own_kills is None and seen.host_oom_kill_rise)
        if not (counted and short and not limit_hit and seen.exit_signal == "SIGKILL"):
            return None
    because = [exit_fact(seen)] if seen.exit_signal else []
    if log is not None:
        because.append(oom_fact(log))
    if own_kills:
        because.append(
            Fact(
                Source.SERVER,
                "Its memory cgroup counted an OOM kill, but no limit of that group was hit",
            )
        )
    if short:
        text = f"The lowest available memory of the machine was {human_bytes(available)} of {human_bytes(total)}"
        because.append(Fact(Source.SERVER if seen.server else Source.KERNEL, text))
    steady = seen.growth.fact if seen.growth is not None else None
    because += [fact for fact in (peak_fact(seen), growth_fact(seen), steady) if fact]
    if log is not None and (seen.exit_was_seen or seen.system_log.kill_is_certain):
        confidence = Confidence.CERTAIN
    elif log is not None or own_kills:
        confidence = Confidence.LIKELY
    else:
        confidence = Confidence.POSSIBLE
    against: tuple[Fact, ...] = ()
    if log is not None and total is not None and available is not None and not short:
        text = f"At the last sample, {human_bytes(available)} of memory was still available"
        against = (Fact(Source.SERVER, text),)
    close = Advice(
        "Close other programs that use memory on this machine.",
        "Other notebooks, browsers and jobs share its memory. `jupyter tfguard doctor` and the panel show the kernels.",
    )
    size = f" ({human_bytes(total)})" if total else ""
    return Finding(
        confidence,
        title=f"The machine ran out of memory{size} and the operating system killed {seen.who.lower()}.",
        short_title="Machine out of memory",
        because=tuple(because),
        against=against,
        advice=(*memory_advice(seen, machine_limit(seen))[:2], close),
        chips=("SIGKILL by the out-of-memory killer", *peak_chips(seen)),
    )
