"""What the guest's scenarios share: control groups, a real Jupyter server and its kernels, and what is told of them."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jupyter_tfguard.demo import server as demo_server
from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.record.bundle import BundleStore

MIB = 1 << 20
GROUPS = Path("/sys/fs/cgroup")
HOME = Path("/run/home")
RESULTS = "/run/results/lines.jsonl"
PATIENCE_SECONDS = 300.0

Json = dict[str, Any]

# Takes memory until something ends it; touched, because untouched memory is not counted.
EAT = (
    "import time\nheld = []\nwhile True:\n"
    "    held.append(bytearray(b'x' * (16 << 20)))\n    time.sleep(0.05)"
)
# In larger bites what is left of the machine's: the last ones cost everybody the code that lies in the file cache.
EAT_ALL = EAT.replace("16 <<", "64 <<")
# Each page of a process is a mapping in its host process, and Linux allows one 65,530 of these by default: 256 MiB. Each
# is also a system call there, which is what takes the time here.
LIMIT_BYTES = 128 * MIB


def prepare() -> None:
    """Folders of Jupyter's and ours in the guest's own memory, memory controller on, only what is needed loaded."""
    private = {"TFGUARD_DIR": "tfguard", "JUPYTER_CONFIG_DIR": "config"}
    private |= {"JUPYTER_DATA_DIR": "data", "IPYTHONDIR": "ipython"}
    for variable, name in private.items():
        os.environ[variable] = str(HOME / name)
    (HOME / "config").mkdir()
    others = ("jupyterlab", "jupyter_lsp", "jupyter_server_terminals", "notebook", "notebook_shim")
    extensions = {"ServerApp": {"jpserver_extensions": dict.fromkeys(others, False)}}
    (HOME / "config/jupyter_server_config.json").write_text(json.dumps(extensions))
    may_die = {"TfGuard": {"stop": "off"}}
    (HOME / "config/jupyter_tfguard_config.json").write_text(json.dumps(may_die))
    (GROUPS / "cgroup.subtree_control").write_text("+memory")
    for name in ("_START_SECONDS", "_KERNEL_SECONDS", "_ANSWER_SECONDS"):
        setattr(demo_server, name, PATIENCE_SECONDS)


def group(name: str, values: Mapping[str, object] | None = None) -> Path:
    """A control group; `values` are written to the files of these names."""
    folder = GROUPS / name
    folder.mkdir()
    for key, value in (values or {}).items():
        (folder / key).write_text(str(value))
    return folder


def enter(folder: Path, pid: int | None = None) -> None:
    """Move a process, this one by default, into a group."""
    (folder / "cgroup.procs").write_text(str(os.getpid() if pid is None else pid))


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """What is started in the block begins its life in this group."""
    enter(folder)
    try:
        yield
    finally:
        enter(GROUPS)


def events(folder: Path) -> dict[str, dict[str, int]]:
    """``memory.events`` and ``memory.events.local`` of a group."""
    found = {}
    for name in ("memory.events", "memory.events.local"):
        rows = (row.split() for row in (folder / name).read_text().splitlines())
        found[name] = {key: int(value) for key, value in rows}
    return found


def path_of(folder: Path) -> str:
    """A group's path as /proc/[pid]/cgroup has it."""
    return f"/{folder.relative_to(GROUPS)}"


def oom_kills() -> int:
    """OOM kills of the whole machine since its start."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def uptime() -> float:
    """Seconds since the guest's OS kernel started."""
    return float(Path("/proc/uptime").read_text().split()[0])


def hide_kernel_log() -> None:
    """Give up the right to read the OS kernel's log, as containers and ordinary users have none, for good."""
    Path("/proc/sys/kernel/dmesg_restrict").write_text("1")
    # prctl(PR_CAPBSET_DROP, ...): CAP_SYSLOG, and CAP_SYS_ADMIN which stands in for it
    for capability in (34, 21):
        if ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) != 0:
            raise OSError(f"capability {capability} cannot be dropped")


def wait_for(what: str, look: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """The first answer that is not empty, None or False.

    Raises:
        TimeoutError: There was none in time.
    """
    ends = time.monotonic() + seconds
    while True:
        found = None
        with contextlib.suppress(OSError):  # on a machine out of memory a server answers late
            found = look()
        if found:
            return found
        if time.monotonic() > ends:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.5)


class Server(demo_server.DemoServer):
    """A real Jupyter server; all of them keep their records in one folder."""

    def __init__(self, name: str) -> None:
        super().__init__(HOME / name, lab=False)

    def entries_of(self, pid: int) -> list[Json]:
        """The lines of the list about this process."""
        entries: list[Json] = self.get("tfguard/api/crashes")["crashes"]
        return [entry for entry in entries if entry["pid"] == pid]


class Kernel:
    """One kernel of a server. It is started anew by the server after each death, with another process id."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.session = server.start_session(server.write_notebook(name))
        self.id = str(self.session["kernel"]["id"])
        self.pid = 0

    def connect(self) -> None:
        """Wait for a process that is not the one known so far, until it answers."""

        def fresh() -> int | None:
            pid = self.server.kernel_pid(self.id)
            return pid if pid != self.pid else None

        self.pid = wait_for("a kernel's process", fresh)
        self.client = self.server.connect(self.id)

    def come_back(self) -> None:
        """Wait for the process that the server starts after a death."""
        self.client.stop_channels()
        self.connect()

    def run(self, code: str) -> None:
        """Run a cell and wait until it is done, without an error."""
        message = self.client.execute(code)
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE_SECONDS)
            if reply["parent_header"].get("msg_id") == message:
                break
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"the cell failed: {reply['content']}")

    def start(self, code: str) -> None:
        """Run a cell that does not come back."""
        self.client.execute(code)

    def death(self) -> Json:
        """The report of this process's death, and from its bundle what it was judged by."""
        return told_of(wait_for("a report", lambda: self.server.entries_of(self.pid)))

    def close(self) -> None:
        """Shut it down."""
        self.client.stop_channels()
        self.server.end_session(self.session)


def told_of(entries: list[Json]) -> Json:
    """The newest of these reports with its evidence, without samples; and how many there are."""
    store = BundleStore(bundles_folder())
    chosen = entries[0]["id"]
    report, bundle = store.report(chosen), store.bundle(chosen)
    report["memory"] = {k: v for k, v in (report["memory"] or {}).items() if k != "samples"}
    server = bundle["server"] or {}
    return {
        "count": len(entries),
        "report": report,
        "server": {k: v for k, v in server.items() if k != "rows"},
        "counters": bundle.get("counters"),
        "system_log": bundle["system_log"],
    }


@contextlib.contextmanager
def crowded(left_bytes: int) -> Iterator[None]:
    """A file in the machine's memory leaves so much of it to all processes."""
    rows = (row.split() for row in Path("/proc/meminfo").read_text().splitlines())
    available = next(int(row[1]) << 10 for row in rows if row[0] == "MemAvailable:")
    file = HOME / "crowd"
    with file.open("wb") as out:
        for _ in range(0, available - left_bytes, MIB):
            out.write(bytes(MIB))
    try:
        yield
    finally:
        file.unlink()


def eat_everything(folder: Path) -> int:
    """Let a process of its own in this group take the machine's memory until it is killed: its exit status."""
    with inside(folder):
        eater = subprocess.Popen([sys.executable, "-c", EAT_ALL])
    return eater.wait(PATIENCE_SECONDS)


def say(line: Json) -> None:
    """One result to the machine outside; whole lines also when two processes speak."""
    with open(RESULTS, "a", encoding="utf-8") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        out.write(json.dumps(line) + "\n")


def scenario(name: str, play: Callable[[], Json]) -> bool:
    """Play one scenario and tell its outcome, whatever it was: true when it came to its end."""
    started = time.monotonic()
    line: Json = {"scenario": name, "ok": True, "log": ""}
    try:
        line |= play()
    except Exception:
        logs = (
            f"{path}:\n{path.read_text(errors='replace')[-3000:]}"
            for path in HOME.glob("*/.server.log")
        )
        line |= {"ok": False, "log": "\n".join((traceback.format_exc(), *logs))}
    line["seconds"] = round(time.monotonic() - started, 1)
    say(line)
    print(f"{name}: {line['seconds']} s, {'done' if line['ok'] else line['log']}", flush=True)
    return bool(line["ok"])
