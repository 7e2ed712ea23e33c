"""Which kinds of evidence are not there, and why: what a report lists under "not checked"."""

from __future__ import annotations

from .evidence import Evidence
from .gpu_shares import used_cards
from .pasted import Pasted

_AROUND = "seen was that of the program around the kernel, which had started it and waited for it"


def missing(seen: Evidence, need: str) -> str | None:
    """Why a kind of evidence is not there, as a sentence; None when it is.

    Raises:
        ValueError: No evidence is called `need`.
    """
    if seen.pasted is not None:
        return _missing_from_text(seen, seen.pasted, need)
    if need == "exit.status":
        if seen.exit_was_seen or seen.kernel_alive:
            return None
        reason = seen.why_unavailable("exit") or "no watcher saw the death, so files alone speak"
        if seen.only_silent:
            reason += ". The kernel may still run, where its processes cannot be seen from here"
        return f"Exit status of the kernel itself: {_AROUND if seen.exit_code_around is not None else reason}."
    if need == "cgroup.counters":
        if seen.own_group is not None and seen.own_group.rise("oom_kill_count") is not None:
            return None
        reason = seen.why_unavailable("cgroup") or "not read before and after"
        return f"Kill counters of the kernel's memory cgroup: {reason}."
    if need == "system_log":
        if seen.system_log.readable:
            return None
        return f"System log (kills by the operating system): {seen.system_log.reason or 'nobody looked'}."
    if need == "kernel.recording":
        if seen.kernel is not None:
            return None
        early = "it ended while it was starting, before the guard is loaded"
        reason = early if seen.never_answered else "the guard was not loaded in this kernel"
        return f"What the kernel itself knew: {reason}."
    if need == "gpu":
        if (seen.server or {}).get("gpus"):
            return _hidden_holders(seen)
        reason = seen.why_unavailable("NVML") or "nobody looked"
        return f"GPU memory: {reason[0].lower() + reason[1:] if reason[1:2].islower() else reason}."
    if need == "memory.pressure":
        if seen.series("host.pressure_some_fraction"):
            return None
        return "Memory pressure of the machine: not recorded (Linux 4.20 and later tell it)."
    if need == "earlier_deaths":
        if isinstance(seen.bundle.get("earlier_deaths"), list):
            return None
        return "Earlier deaths on this machine: nobody wrote them down with this one."
    raise ValueError(f"a rule needs {need!r}, which no evidence is called")


def _missing_from_text(seen: Evidence, pasted: Pasted, need: str) -> str | None:
    if need == "exit.status" and pasted.status is None:
        return "Exit status: --exit-signal or --exit-code would tell how it ended."
    if need == "system_log" and not pasted.kernel_log and not seen.system_log.oom_kills:
        return "The operating system's log: --kernel-log FILE would show kills for memory and faults of the GPU."
    if need in ("cgroup.counters", "kernel.recording", "gpu"):
        return "Counters, samples and the GPU: only a guarded kernel records them."
    return None


def _hidden_holders(seen: Evidence) -> str | None:
    """Why it is not known who held memory of some GPU; None where this kernel was seen on one, or that was not noted."""
    divided = {gpu.index for gpu in seen.gpus if gpu.mig_index is not None}
    whole = [gpu for gpu in seen.gpus if gpu.mig_index is not None or gpu.index not in divided]
    if used_cards(seen) or all(gpu.processes is not None for gpu in whole):
        return None
    reasons = (gpu.processes_reason for gpu in whole if gpu.processes is None)
    reason = next((text for text in reasons if text), None)
    return None if reason is None else f"Who held memory of the GPU. {reason}"
