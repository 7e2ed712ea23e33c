"""Which kinds of evidence are missing, and why: the section "not checked" of a report."""

from __future__ import annotations

from .evidence import Evidence
from .gpu_shares import used_cards
from .pasted import Pasted

_AROUND = (
    "not known; only that of the program that had started the kernel, and waited for it, was seen"
)


def missing(seen: Evidence, need: str) -> str | None:
    """Why a kind of evidence is missing, as a sentence; None when it is available.

    Raises:
        ValueError: `need` is not a kind of evidence.
    """
    if seen.pasted is not None:
        return _missing_from_text(seen, seen.pasted, need)
    if need == "exit.status":
        if seen.exit_is_known or seen.kernel_alive:
            return None
        reason = (
            seen.why_unavailable("exit") or "no server saw the crash, so only files are available"
        )
        if seen.only_silent:
            reason += (
                ". The kernel may still run on a machine whose processes are not visible from here"
            )
        return f"Exit status of the kernel itself: {_AROUND if seen.exit_code_around is not None else reason}."
    if need == "cgroup.counters":
        if seen.own_group is not None and seen.own_group.rise("oom_kill_count") is not None:
            return None
        reason = seen.why_unavailable("cgroup") or "not read both before and after the end"
        return f"Kill counters of the kernel's memory cgroup: {reason}."
    if need == "system_log":
        if seen.system_log.readable:
            return None
        return (
            f"System log (kills by the operating system): {seen.system_log.reason or 'not read'}."
        )
    if need == "kernel.recording":
        if seen.kernel is not None:
            return None
        early = "the kernel ended during its start, before the guard was loaded"
        reason = early if seen.never_answered else "the guard was not loaded in this kernel"
        return f"The kernel's own recording: {reason}."
    if need == "gpu":
        if (seen.server or {}).get("gpus"):
            return _hidden_holders(seen)
        reason = seen.why_unavailable("NVML") or "not read"
        return f"GPU memory: {reason[0].lower() + reason[1:] if reason[1:2].islower() else reason}."
    if need == "memory.pressure":
        if seen.series("host.pressure_some_fraction"):
            return None
        return "Memory pressure of the machine: not recorded (needs Linux 4.20 or later)."
    if need == "earlier_deaths":
        if isinstance(seen.bundle.get("earlier_deaths"), list):
            return None
        return "Earlier crashes on this machine: not recorded in this bundle."
    raise ValueError(f"a rule needs unknown evidence: {need!r}")


def _missing_from_text(seen: Evidence, pasted: Pasted, need: str) -> str | None:
    if need == "exit.status" and pasted.status is None:
        return "Exit status: not given. Pass it with --exit-signal or --exit-code."
    if need == "system_log" and not pasted.kernel_log and not seen.system_log.oom_kills:
        return "The operating system's log: not given. Pass it with --kernel-log FILE; it shows out-of-memory kills and GPU faults."
    if need in ("cgroup.counters", "kernel.recording", "gpu"):
        return "Counters, samples and the GPU: recorded only in a kernel with the guard."
    return None


def _hidden_holders(seen: Evidence) -> str | None:
    """Why the processes on some GPU are not known; None if this kernel was seen on a GPU, or no reason was recorded."""
    divided = {gpu.index for gpu in seen.gpus if gpu.mig_index is not None}
    whole = [gpu for gpu in seen.gpus if gpu.mig_index is not None or gpu.index not in divided]
    if used_cards(seen) or all(gpu.processes is not None for gpu in whole):
        return None
    reasons = (gpu.processes_reason for gpu in whole if gpu.processes is None)
    reason = next((text for text in reasons if text), None)
    return None if reason is None else f"Which processes held GPU memory: not known. {reason}"
