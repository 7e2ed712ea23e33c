"""SIGKILL, and nothing says from whom. Out of memory is one of its senders, not the only one."""

from __future__ import annotations

from ...units import human_bytes
from ..ending import exit_fact
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..memory import peak_chips, peak_fact
from ..rule import rule


@rule("sigkill_unattributed", needs=("exit.status", "cgroup.counters", "system_log"))
def sigkill_unattributed(seen: Evidence) -> Finding | None:
    if seen.kernel_alive or seen.exit_signal != "SIGKILL":
        return None
    because = [exit_fact(seen)]
    own = seen.own_group
    kills = own.rise("oom_kill_count") if own else None
    if kills == 0:
        text = "No out-of-memory kill was counted in the kernel's memory cgroup"
        because.append(Fact(Source.SERVER, text))
    elif seen.host_oom_kill_rise == 0:
        because.append(Fact(Source.SERVER, "No out-of-memory kill was counted on this machine"))
    if seen.system_log_readable and seen.oom_log_of_kernel is None:
        because.append(Fact(Source.SYSTEM_LOG, "It names no out-of-memory kill of this process"))
    peak = peak_fact(seen)
    if peak is not None:
        because.append(peak)
    ruled_out = seen.exit_was_seen and (kills == 0 or seen.host_oom_kill_rise == 0)
    limit = seen.limit()
    hint = ""
    if seen.peak_bytes and limit and ruled_out:
        hint = f" Memory was not the reason here: {human_bytes(seen.peak_bytes)} of {human_bytes(limit[0])} at most."
    return Finding(
        Confidence.CERTAIN if ruled_out else Confidence.LIKELY,
        title="The kernel was killed with SIGKILL; nothing says by whom.",
        short_title="Killed, sender unknown",
        because=tuple(because),
        advice=(
            Advice(
                "Look for whoever ends processes here.",
                "A person or script (kill -9), a batch system, a container platform, or a user-space "
                f"memory watcher such as systemd-oomd or earlyoom can send it.{hint}",
            ),
        ),
        chips=("SIGKILL", *peak_chips(seen)),
    )
