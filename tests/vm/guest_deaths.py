"""What happens in the guest: kernels and their neighbours run out of memory in the ways that cgroup v2 knows.

Run by :mod:`tests.vm.machine`; each scenario tells what the product reported, and tests outside judge it.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from jupyter_tfguard import cli
from jupyter_tfguard.demo.limits import LimitedGroup, make_limit

from .guest_rig import (
    EAT,
    EAT_ALL,
    HOME,
    LIMIT_BYTES,
    MIB,
    PATIENCE_SECONDS,
    Json,
    Kernel,
    Server,
    crowded,
    eat_everything,
    enter,
    events,
    group,
    hide_kernel_log,
    inside,
    oom_kills,
    path_of,
    prepare,
    say,
    scenario,
    told_of,
    uptime,
    wait_for,
)

# Long enough for a watcher to look twice at a process that was moved, and at its counters, in good health.
SETTLE_SECONDS = 3.0
# A machine that ran out of memory is looked at more rarely for a while: every five seconds.
AFTERWARDS_SECONDS = 8.0
# So that a process that takes this much is the largest, and the one that Linux chooses.
_MORE_THAN_A_KERNEL_BYTES = 180 * MIB
_ORPHAN = HOME / "orphan"


def main() -> None:
    """Play everything: what needs no server beside the server in a container, then what needs the first one's end."""
    say({"scenario": "boot", "ok": True, "uptime": uptime(), "os_kernel": platform.release()})
    prepare()
    beside = os.fork()
    if beside == 0:
        try:
            Container().play()
        finally:
            os._exit(0)
    scenario("demo", demo_limit)
    scenario("unwatched", unwatched)
    scenario("stopped", stopped)
    os.waitpid(beside, 0)
    Service().play()
    say({"scenario": "end", "ok": True, "uptime": uptime()})


def eat_in(kernel: Kernel, folder: Path) -> None:
    """Move a kernel into a group, let the watcher see it there, and let it eat."""
    enter(folder, kernel.pid)
    kernel.run("before = 1")
    time.sleep(SETTLE_SECONDS)
    kernel.start(EAT)


class Container:
    """Server and kernel in one group that is killed as a whole. The OS kernel's log is out of reach."""

    server: Server
    kernel: Kernel

    def play(self) -> None:
        if scenario("container", self.start):
            scenario("hidden log", self.hidden_log)
            scenario("hidden child", self.hidden_child)
            scenario("group kill", self.group_kill)

    def start(self) -> Json:
        hide_kernel_log()
        self.group = group("container", {"memory.max": 270 * MIB, "memory.oom.group": 1})
        with inside(self.group):
            self.server = Server("container")
        self.kernel = Kernel(self.server, "contained")
        self.kernel.connect()
        return {}

    def hidden_log(self) -> Json:
        """A limit of the kernel's own; nobody here may read the log."""
        own = group("hidden", {"memory.max": LIMIT_BYTES})
        eat_in(self.kernel, own)
        return self.kernel.death() | {"events": events(own)}

    def hidden_child(self) -> Json:
        """A child of the kernel is the victim, and the kernel kills itself at once: the counters are the same."""
        self.kernel.come_back()
        own = group("child", {"memory.max": LIMIT_BYTES})
        enter(own, self.kernel.pid)
        self.kernel.run("import os, subprocess, sys")
        time.sleep(SETTLE_SECONDS)
        self.kernel.start(
            f"child = subprocess.Popen([sys.executable, '-c', {EAT!r}])\n"
            "open(f'/proc/{child.pid}/oom_score_adj', 'w').write('500')\n"
            "assert child.wait() == -9\nos.kill(os.getpid(), 9)"
        )
        return self.kernel.death() | {"events": events(own)}

    def group_kill(self) -> Json:
        """The container's limit: the kernel eats, and both are killed."""
        self.kernel.come_back()
        time.sleep(SETTLE_SECONDS)
        self.kernel.start(EAT)
        status = self.server.process.wait(PATIENCE_SECONDS)
        _ORPHAN.write_text(str(self.kernel.pid))
        return {
            "server_pid": self.server.process.pid,
            "server_status": status,
            "events": events(self.group),
        }


class Service:
    """A server in a group without a limit, as a system service has it, that may read the log."""

    server: Server
    first: Kernel
    second: Kernel

    def play(self) -> None:
        if scenario("service", self.start):
            for play in (
                self.orphan,
                # The two kernels take turns: while one dies, the other one is started anew.
                self.own_limit,
                self.host,
                self.ancestor_limit,
                self.neighbour_at_once,
                self.neighbour,
                self.orphan_again,
            ):
                scenario(play.__name__.replace("_", " "), play)

    def start(self) -> Json:
        self.group = group("service")
        with inside(self.group):
            self.server = Server("service")
        self.first, self.second = Kernel(self.server, "first"), Kernel(self.server, "second")
        self.first.connect()
        self.second.connect()
        return {}

    def orphan(self) -> Json:
        """The kernel that was killed with its container, found by the next server."""
        pid = int(_ORPHAN.read_text())
        return told_of(wait_for("the orphan's report", lambda: self.server.entries_of(pid)))

    def orphan_again(self) -> Json:
        """How often it is in the list after everything, and after another look for orphans."""
        code = cli.main(["list"])
        return {"code": code, "count": len(self.server.entries_of(int(_ORPHAN.read_text())))}

    def own_limit(self) -> Json:
        """A limit set in the demo's way."""
        limit = make_limit(LIMIT_BYTES)
        assert isinstance(limit, LimitedGroup), limit
        eat_in(self.first, limit.folder)
        told = self.first.death()
        return told | {"events": events(limit.folder), "path": path_of(limit.folder)}

    def ancestor_limit(self) -> Json:
        """The limit is that of the group around the kernel's own."""
        self.first.come_back()
        outer = group("outer", {"memory.max": LIMIT_BYTES, "cgroup.subtree_control": "+memory"})
        inner = group("outer/inner")
        eat_in(self.first, inner)
        told = self.first.death()
        return told | {"outer": events(outer), "inner": events(inner)}

    def host(self) -> Json:
        """No limit: the kernel eats all that the machine has."""
        self.second.run("before = 1")
        time.sleep(SETTLE_SECONDS)
        before = oom_kills()
        with crowded(LIMIT_BYTES):
            self.second.start(EAT_ALL)
            told = self.second.death()
        return told | {"events": events(self.group), "host_kills": oom_kills() - before}

    def neighbour(self) -> Json:
        """Another process eats all that the machine has; the kernel lives, and is killed by hand a little later."""
        self.first.come_back()
        before = oom_kills()
        with crowded(_MORE_THAN_A_KERNEL_BYTES):
            status = eat_everything(group("other"))
        self.first.run("alive = 1")
        time.sleep(AFTERWARDS_SECONDS)
        os.kill(self.first.pid, signal.SIGKILL)
        told = self.first.death()
        self.first.close()
        return told | {"neighbour_status": status, "host_kills": oom_kills() - before}

    def neighbour_at_once(self) -> Json:
        """The same in the kernel's own group, and in the same moment."""
        self.second.come_back()
        self.second.run("alive = 1")
        with crowded(_MORE_THAN_A_KERNEL_BYTES):
            self.server.process.send_signal(signal.SIGSTOP)  # its watcher must not look in between
            status = eat_everything(self.group)
            os.kill(self.second.pid, signal.SIGKILL)
            self.server.process.send_signal(signal.SIGCONT)
        told = self.second.death()
        self.second.close()
        return told | {"neighbour_status": status, "events": events(self.group)}


def demo_limit() -> Json:
    """A small child in a limit set in the demo's way: nothing of ours but the limit."""
    limit = make_limit(LIMIT_BYTES)
    assert isinstance(limit, LimitedGroup), limit
    child = subprocess.Popen([sys.executable, "-c", f"input()\n{EAT}"], stdin=subprocess.PIPE)
    limit.add(child.pid)
    child.communicate(b"\n", timeout=PATIENCE_SECONDS)
    seen = {"path": path_of(limit.folder), "events": events(limit.folder)}
    swap = (limit.folder / "memory.swap.max").read_text().strip()
    limit.remove()
    gone = not limit.folder.exists()
    return seen | {"status": child.returncode, "swap_max": swap, "removed": gone}


def lone_kernel(own: Path, environment: dict[str, str]) -> tuple[KernelManager, Any]:
    """A kernel of jupyter_client alone in a group, with its client."""
    kernels = KernelManager(kernel_name="python3")
    kernels.start_kernel(env=environment)
    client = kernels.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE_SECONDS)
    enter(own, kernels.provisioner.pid)
    return kernels, client


def unwatched() -> Json:
    """A kernel of jupyter_client alone, with records of its own; the command tells of its death afterwards."""
    environment = os.environ | {"TFGUARD_DIR": str(HOME / "unwatched")}
    own = group("unwatched", {"memory.max": LIMIT_BYTES})
    kernels, client = lone_kernel(own, environment)
    time.sleep(SETTLE_SECONDS)
    client.execute(EAT)
    wait_for("the kernel's end", lambda: kernels.provisioner.process.poll() is not None)
    client.stop_channels()
    command = [sys.executable, "-m", "jupyter_tfguard", "why", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    return {"report": {k: v for k, v in report.items() if k != "memory"}, "events": events(own)}


def stopped() -> Json:
    """A kernel with the stop at its strongest fills its limit, then asks for too much at once."""
    config = HOME / "stopping"
    config.mkdir()
    (config / "jupyter_tfguard_config.json").write_text('{"TfGuard": {"stop": "full"}}')
    data = {"TFGUARD_DIR": str(config), "JUPYTER_CONFIG_DIR": str(config)}
    own = group("stopped", {"memory.max": LIMIT_BYTES, "memory.swap.max": 0})
    kernels, client = lone_kernel(own, os.environ | data)

    def run(code: str) -> Json:
        reply = client.execute_interactive(
            code, timeout=PATIENCE_SECONDS, output_hook=lambda _: None
        )
        return {name: reply["content"].get(name) for name in ("status", "ename", "evalue")}

    found = {
        "import": run("import numpy as np, time"),
        "fill": run(
            "held = []\nwhile True:\n    held.append(np.ones(100_000))\n    time.sleep(0.01)"
        ),
        "kept": run("assert len(held) > 100"),
        "retry": run("held.clear(); assert sum(np.ones(100_000).sum() for _ in range(100)) == 1e7"),
        "at once": run("np.ones(1 << 27)"),
        "alive": run("assert 1 + 1 == 2"),
    }
    client.stop_channels()
    kernels.shutdown_kernel(now=True)
    return found | {"events": events(own)}


if __name__ == "__main__":
    main()
