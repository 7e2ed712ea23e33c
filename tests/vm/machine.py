"""One boot of a small virtual machine that shares this machine's files read-only, and what its guest said.

QEMU in emulation, or with KVM where a probe shows that it works. No network, no disk image. The guest prints results as
JSON lines on its second serial port; the first one is its console.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .os_kernel import NoVirtualMachine, find_os_kernel, initial_file_system

QEMU = "qemu-system-x86_64"
ROOT = Path(__file__).parents[2]
_PROBE_SECONDS = 5.0
_QUIET = (
    "console=ttyS0 panic=-1 loglevel=4 no_timer_check mitigations=off nokaslr random.trust_cpu=on"
)

# The first process: the files of this machine below /host with the guest's own /proc, /sys, /dev and /run, and nothing
# but cgroup v2. It ends by switching the machine off, whatever the program in it did.
_INIT = """#!/bin/busybox sh
PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs none /dev; mount -t proc none /proc
for module in /modules/*; do insmod $module || echo "module $module was refused"; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 host /host
mount -t proc none /host/proc; mount -t sysfs none /host/sys; mount -t devtmpfs none /host/dev
mkdir /host/dev/shm; mount -t tmpfs none /host/dev/shm; mount -t tmpfs none /host/run
mount -t cgroup2 none /host/sys/fs/cgroup
ip link set lo up
stty -F /dev/ttyS1 raw
{program}
echo "the guest's program ended with exit code $?"
echo o > /proc/sysrq-trigger
sleep 60
"""


@dataclass
class Boot:
    """What one boot gave.

    Attributes:
        lines: The results, in order.
        console: The end of the guest's console: OS kernel, and whatever its program printed.
        seconds: From the start of QEMU to its end.
        accelerator: ``kvm`` or ``tcg``.
        timed_out: True when it had to be ended.
    """

    lines: list[dict[str, Any]]
    console: str
    seconds: float
    accelerator: str
    timed_out: bool = False


@dataclass
class VirtualMachine:
    """A guest with one processor: a second one, emulated beside busy programs, spends its time waiting for the first.

    Args:
        folder: For the initramfs and what the guest prints.
        memory_mib: Its memory, no swap.

    Raises:
        NoVirtualMachine: QEMU, its OS kernel or busybox is missing.
    """

    folder: Path
    memory_mib: int = 1024
    accelerator: str = field(init=False)

    def __post_init__(self) -> None:
        if shutil.which(QEMU) is None:
            raise NoVirtualMachine(f"{QEMU} is not installed")
        self._os_kernel = find_os_kernel()
        self.accelerator = "kvm" if self._kvm_works() else "tcg"

    def _kvm_works(self) -> bool:
        """True when an OS kernel without any file system gets as far as its panic; a bad KVM hangs before."""
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        command = [*self._command("kvm", 256), "-append", "panic=-1"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def _command(self, accelerator: str, memory_mib: int) -> list[str]:
        how = "kvm" if accelerator == "kvm" else "tcg,thread=multi"
        # A processor without AVX: emulated, its string functions are slower than the plain ones.
        processor = "host" if accelerator == "kvm" else "Nehalem"
        # The slower it runs beside the other tests, the more its servers and kernels look at their clocks. Without the
        # right to be preferred, `nice` says so and starts it all the same.
        words = f"nice -n -5 {QEMU} -no-user-config -nodefaults -no-reboot -display none -M q35 -accel {how} -cpu {processor} -smp 1"
        return [*words.split(), "-m", str(memory_mib), "-kernel", str(self._os_kernel.image)]

    def run(self, module: str, *, silence_seconds: float, arguments: tuple[str, ...] = ()) -> Boot:
        """Boot, run a Python module of this repository with this environment's Python, and switch off.

        How long that takes is the machine's affair; a guest that prints nothing for `silence_seconds` is ended.
        """
        variables = {
            "PATH": f"{sys.prefix}/bin:{os.defpath}",
            "HOME": "/run/home",
            "TMPDIR": "/run",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        python = [sys.executable, "-m", module, *arguments]
        setting = [f"{name}={value}" for name, value in variables.items()]
        inside = f"mkdir -p /run/home && cd {shlex.quote(str(ROOT))} && exec {shlex.join(['env', '-i', *setting, *python])}"
        script = _INIT.format(program=f"chroot /host /bin/sh -c {shlex.quote(inside)}")
        archive = self.folder / "initramfs"
        archive.write_bytes(initial_file_system(self._os_kernel, script))
        console, results = self.folder / "console.txt", self.folder / "results.jsonl"
        share = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
        command = [
            *self._command(self.accelerator, self.memory_mib),
            *("-initrd", str(archive), "-append", _QUIET, "-virtfs", share),
            *("-serial", f"file:{console}", "-serial", f"file:{results}"),
        ]
        started = time.monotonic()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as machine:
            timed_out = not _ends_while_it_speaks(machine, (console, results), silence_seconds)
            if timed_out:
                machine.kill()
        seconds = time.monotonic() - started
        tail = console.read_text(errors="replace")[-20_000:] if console.exists() else ""
        return Boot(_json_lines(results), tail, seconds, self.accelerator, timed_out)


def _ends_while_it_speaks(
    machine: subprocess.Popen[bytes], files: tuple[Path, ...], silence_seconds: float
) -> bool:
    """Wait for the end of QEMU as long as one of these files grows: true when it ended by itself."""
    size, last_word = 0, time.monotonic()
    while time.monotonic() - last_word < silence_seconds:
        with contextlib.suppress(subprocess.TimeoutExpired):
            machine.wait(1)
            return True
        grown = sum(file.stat().st_size for file in files if file.exists())
        if grown > size:
            size, last_word = grown, time.monotonic()
    return False


def _json_lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines; one that the end of the machine cut off is left out."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
