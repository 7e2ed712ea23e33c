"""Checks that the processor supports the instructions used by the published wheels."""

from __future__ import annotations

from ...procfs import colon_lines
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "processor"


def check(machine: Environment) -> CheckResult | None:
    """The x86 wheels need AVX. Source: /proc/cpuinfo; the note `avx` of the table tensorflow_builds."""
    if machine.build is None or machine.processor != "x86_64" or machine.system != "linux":
        return None
    text = machine.path("/proc/cpuinfo").read_text("utf-8", "replace")
    first = colon_lines(text.split("\n\n")[0].replace("\t", ""))
    model = first.get("model name", "this processor")
    if "avx" in first.get("flags", "").split():
        return CheckResult(NAME, Status.OK, f"{model} has AVX")
    text = f"{model} has no AVX, which the published builds require: importing them ends in SIGILL"
    if "hypervisor" in first.get("flags", ""):
        text += (
            ". This is a virtual machine: pass through the host's processor (QEMU: -cpu host; "
            "Proxmox and others: processor type `host`)"
        )
    status = Status.PROBLEM if machine.build.in_table else Status.WARNING
    return CheckResult(NAME, status, text)
