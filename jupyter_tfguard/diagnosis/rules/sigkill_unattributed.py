"""SIGKILL from an unknown sender. Lack of memory is one possible reason, not the only one."""

from __future__ import annotations

from ...units import human_bytes
from ..ending import exit_fact, text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..memory import near_limit, peak_chips, peak_fact, use_at_crash
from ..rule import rule

_SEARCH = Advice(
    "Search the system log for the kill, and give these lines to `explain --kernel-log`.",
    "The OS kernel, systemd-oomd and earlyoom write whom they killed and why. Batch systems have logs of their own.",
    "journalctl --since -2h | grep -i -e 'killed' -e 'oom' -e 'out of memory'",
)


@rule(
    "sigkill_unattributed",
    needs=("exit.status", "cgroup.counters", "system_log"),
    outranks=("hang",),
)
def sigkill_unattributed(seen: Evidence) -> Finding | None:
    """Something ended the kernel with SIGKILL, and no evidence shows who. Lack of memory is one possible reason, not the only one.

    The kernel ended by SIGKILL. No counter and no line of the system log connects that with a lack of memory.
    """
    text = text_evidence(seen, "sigkill_unattributed")
    if text is None and (seen.kernel_alive or seen.exit_signal != "SIGKILL"):
        return None
    because = [exit_fact(seen)] if text is None else list(text.facts)
    own = seen.own_group
    kills = own.rise("oom_kill_count") if own else None
    if kills == 0:
        counted = "The kernel's memory cgroup counted no kill"
        because.append(Fact(Source.SERVER, counted))
    elif seen.host_oom_kill_rise == 0:
        because.append(
            Fact(Source.SERVER, "The operating system counted no kill because of memory")
        )
    other = seen.system_log.kill_of_others
    if other is not None or (seen.system_log.readable and seen.system_log.kill_of_kernel is None):
        names = "The log shows no kill of this process"
        names += f", but one of process {other.pid}" if other is not None else ""
        because.append(Fact(Source.SYSTEM_LOG, names))
    peak = peak_fact(seen)
    if peak is not None:
        because.append(peak)
    ruled_out = seen.exit_was_seen and (kills == 0 or seen.host_oom_kill_rise == 0)
    senders = (
        "A person or script (kill -9), a batch system, a container platform, or a user-space "
        "memory daemon such as systemd-oomd or earlyoom can send it."
    )
    near, limit = near_limit(seen), seen.memory_limit()
    if near is not None and limit is not None:
        high = "High memory use fits a memory daemon" if near else "Memory use was low"
        senders += f" {high}: {human_bytes(use_at_crash(seen))} of {limit.text()}."
    return Finding(
        text.confidence if text else Confidence.CERTAIN if ruled_out else Confidence.LIKELY,
        title=f"{seen.who} was killed with SIGKILL; the sender is unknown.",
        short_title="Killed, sender unknown",
        because=tuple(because),
        advice=(
            Advice("Find out what sends SIGKILL on this machine.", senders),
            *((_SEARCH,) if seen.pasted is not None and not seen.pasted.kernel_log else ()),
        ),
        chips=("SIGKILL", *peak_chips(seen)),
    )
