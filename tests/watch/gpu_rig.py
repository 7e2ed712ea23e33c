"""Cards as the helper tells them, and processes that use them or do not, without a driver."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from jupyter_tfguard.watch.gpu.gpu_helper import Gpus
from jupyter_tfguard.watch.gpu.gpu_processes import ProcessCheck
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel

GIB = 1 << 30
CUDA = "7f00-7f01 r-xp 00000000 08:01 42 /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15\n"
DRIVER = "7f00-7f01 rw-s 00000000 00:06 42 /dev/nvidia0\n"
NEITHER = "7f00-7f01 r-xp 00000000 08:01 42 /usr/lib/x86_64-linux-gnu/libc.so.6\n"


def process(pid: int, used: int | None = GIB, name: str | None = "python3") -> dict[str, Any]:
    return {"pid": pid, "used_bytes": used, "name": name}


def card(
    index: int = 0, processes: list[dict[str, Any]] | None = None, **told: Any
) -> dict[str, Any]:
    """A device of the helper's; well, unless `told` says otherwise."""
    used = sum(p["used_bytes"] or 0 for p in processes or ()) + GIB // 2
    return {
        "nvml_index": index,
        "mig_index": None,
        "gpu_uuid": f"GPU-{index}",
        "name": "NVIDIA A100",
        "bus_id": f"0000:4{index}:00.0",
        "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": used,
        "memory_free_bytes": 80 * GIB - used,
        "memory_reserved_bytes": GIB // 2,
        "utilization_fraction": 0.5,
        "temperature_celsius": 60,
        "slowdown_celsius": 92,
        "shutdown_celsius": 95,
        "power_watts": 200.0,
        "power_limit_watts": 400.0,
        "throttle_reasons": [],
        "lost": False,
        "processes": processes,
        "processes_reason": None,
    } | told


def told(*devices: dict[str, Any], time: float = 1.0, events: tuple[Any, ...] = ()) -> Gpus:
    return Gpus("ok", None, devices, events, time)


class Machine:
    """Processes with what they have mapped, some of them kernels that are watched."""

    def __init__(self, root: Path) -> None:
        self.proc = root / "proc"
        (self.proc / "self").mkdir(parents=True)
        self.check = ProcessCheck(str(self.proc))
        self.monitored_kernels: tuple[MonitoredKernel, ...] = ()
        self._started: list[subprocess.Popen[bytes]] = []

    def has(self, pid: int, maps: str = CUDA, parent: int = 1) -> int:
        """A process of this id with these mappings."""
        (self.proc / str(pid)).mkdir(exist_ok=True)
        self._stat(pid, parent)
        (self.proc / str(pid) / "maps").write_text(maps)
        return pid

    def has_unreadable(self, pid: int) -> int:
        """A process that may not be looked at: as root nothing is closed, so a folder stands for it."""
        (self.proc / str(pid) / "maps").mkdir(parents=True)
        self._stat(pid, 1)
        return pid

    def _stat(self, pid: int, parent: int) -> None:
        # The name of a program may hold what separates the fields.
        after = f"S {parent} " + " ".join(["0"] * 17) + " 4711 0"
        (self.proc / str(pid) / "stat").write_text(f"{pid} (a) b (c) {after}")

    def ends(self, pid: int) -> None:
        (self.proc / str(pid) / "maps").unlink()
        (self.proc / str(pid) / "stat").unlink()
        (self.proc / str(pid)).rmdir()

    def kernel(
        self, name: str, maps: str | None = CUDA, children: tuple[int, ...] = ()
    ) -> MonitoredKernel:
        """A kernel that is watched."""
        code = "import sys; sys.stdin.read()"
        started = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE)
        self._started.append(started)
        kernel = Kernel(name, "python3", f"{name}.ipynb")
        monitored = MonitoredKernel(started.pid, kernel, SharedGroups())
        monitored.children = children
        self.monitored_kernels = (*self.monitored_kernels, monitored)
        if maps is not None:
            self.has(started.pid, maps)
        return monitored

    def close(self) -> None:
        for monitored in self.monitored_kernels:
            monitored.close()
        for started in self._started:
            started.communicate()
