"""Has the processor the instructions that the published wheels are compiled for."""

from __future__ import annotations

from ...collectors.procfs import colon_lines
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "processor"
_WORTH_TELLING = ("avx", "avx2", "fma", "avx512f")


def check(machine: Environment) -> CheckResult | None:
    """The x86 wheels need AVX. Source: /proc/cpuinfo; the note `avx` of the table tensorflow_builds."""
    if machine.build is None or machine.processor != "x86_64" or machine.system != "linux":
        return None
    try:
        text = machine.path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError as bad:
        return CheckResult(NAME, Status.UNKNOWN, f"/proc/cpuinfo cannot be read: {bad.strerror}")
    first = colon_lines(text.split("\n\n")[0].replace("\t", ""))
    flags = set(first.get("flags", "").split())
    model = first.get("model name", "this processor")
    if not flags:
        return CheckResult(NAME, Status.UNKNOWN, "/proc/cpuinfo names no instructions")
    if "avx" in flags:
        has = ", ".join(name.upper() for name in _WORTH_TELLING if name in flags)
        return CheckResult(NAME, Status.OK, f"{model} has {has}")
    if machine.build.not_in_table is not None:
        text = f"{model} has no AVX; whether {machine.build} needs it is not known"
        return CheckResult(NAME, Status.WARNING, text)
    text = f"{model} has no AVX, which {machine.build} is compiled for: its import ends in SIGILL"
    if "hypervisor" in flags:
        text += (
            ". This is a virtual machine: give it its host's processor (QEMU: -cpu host; "
            "Proxmox and others: processor type `host`)"
        )
    return CheckResult(NAME, Status.PROBLEM, text)
