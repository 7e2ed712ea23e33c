"""Makes up recordings: whatever a notebook may write into the folder of its own kernel, and a tree outside that it points to."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import time
import zlib
from pathlib import Path
from typing import Any

from jupyter_tfguard.record.alive import Place
from jupyter_tfguard.record.identity import ProcessIdentity
from tests.rigs.hostile import hostile_texts

# What stands in the files of the tree outside; neither may come into a report.
SECRET, COUNT = "words-of-a-file-outside", "987654321"
_GIB = 1 << 30
_METRICS = (
    "process.rss_bytes", "process.peak_bytes", "cgroup.limit_bytes", "cgroup.used_bytes", "cgroup.oom_kill_count",
    "cgroup.oom_count", "cgroup.failcnt_count", "host.available_bytes", "host.total_bytes", "host.oom_kill_count",
)  # fmt: skip
_ATOMS: tuple[Any, ...] = (
    None, True, 0, -1, 1, 7, 2**31, 2**63, -(2**63), 2**64, 10**300, 10**400, 0.5, -1e308, 1e308, math.nan, math.inf, -math.inf,
    "", "0", "certain", "SIGKILL", "\ud800", "\0", "a" * 5000, "../../../etc/passwd", [], {}, [[]], [None], {"": None},
    {"path": "/../../../../../..", "version": 1}, ["x"] * 300, [10**400] * 3,
)  # fmt: skip
_NUMBERS = (
    0.0,
    -1.0,
    1.0,
    5e9,
    1e18,
    1e300,
    -1e300,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    2.0**63,
)


def _claims(pid: int) -> tuple[str, ...]:
    """Lines that speak of memory kills and fatal errors, as the system and libraries write them."""
    return (
        f"Memory cgroup out of memory: Killed process {pid} (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB",
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=p,pid={pid},uid=0",
        f"Out of memory: Killed process {pid} (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0",
        f"kernel: [12.3] oom-kill:constraint=CONSTRAINT_NONE,task=python3,pid={pid},uid=0",
        "2026-11-21 02:14:05.1: F tensorflow/core/x.cc:1] CUDA_ERROR_OUT_OF_MEMORY",
        "F0000 00:00:1700000000.123456    4711 x.cc:224] No space left on device",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "double free or corruption (out)", "*** stack smashing detected ***: terminated", "OMP: Error #15: x",
        "Fatal Python error: Segmentation fault", "Fatal Python error: Bus error", "Fatal Python error: Aborted",
        "unable to allocate shared memory", "Killed", "exit status 137", "confidence: certain",
        "Current thread 0x00007f3a (most recent call first):", '  File "/tmp/ipykernel_1/2.py", line 4 in poke',
    )  # fmt: skip


def outside_tree(base: Path) -> Path:
    """A tree outside, that looks like a control group: who reads there takes its numbers for the kernel's."""
    outside = base / "outside"
    (outside / "folder").mkdir(parents=True)
    for name in ("file", "folder/kept"):
        (outside / name).write_text(SECRET)
    for name, content in (
        ("memory.events", f"low 0\nhigh 0\nmax 9\noom 9\noom_kill {COUNT}\n"),
        ("memory.events.local", f"max 9\noom {COUNT}\noom_kill 9\n"),
        ("memory.max", f"{COUNT}\n"),
        ("memory.current", f"{COUNT}\n"),
        ("memory.oom_control", f"oom_kill {COUNT}\n"),
        ("memory.limit_in_bytes", f"{COUNT}\n"),
    ):
        (outside / name).write_text(content)
    return outside


class Forger:
    """Makes one recording, by chance.

    Args:
        choose: All chance comes from it.
        outside: A tree that paths and links lead to.
    """

    def __init__(self, choose: random.Random, outside: Path) -> None:
        self.choose = choose
        self.outside = outside
        # No process has it, nor ever will: Linux gives none above 4194304.
        self.pid = choose.choice((4_194_305, 5_000_000, 2**31, 9_999_999_999))
        self.identity = ProcessIdentity(self.pid, choose.choice((0, 42, 10**18)))
        self._texts = hostile_texts(60, choose.randrange(2**31))

    def chance(self, probability: float) -> bool:
        return self.choose.random() < probability

    def atom(self) -> Any:
        """Any value."""
        if self.chance(0.3):
            return self.text()
        return self.choose.choice(_ATOMS)

    def text(self) -> str:
        """A hostile text, or a claim."""
        if self.chance(0.5):
            return self.choose.choice(self._texts).text
        return self.choose.choice((*_claims(self.pid), str(self.outside / "file"), SECRET[:5]))

    def spoilt(self, value: dict[str, Any], probability: float = 0.15) -> dict[str, Any]:
        """The same with some values replaced, left out or added."""
        found = {k: self.atom() if self.chance(probability) else v for k, v in value.items()}
        if self.chance(0.3):
            found[self.text()[:50]] = self.atom()
        return found

    def forge(self, root: Path) -> Path:
        """A recording below `root`."""
        folder = root / self.identity.folder_name
        folder.mkdir(mode=0o700)
        header = self._header()
        content = json.dumps(header).encode("utf-8", "surrogatepass")
        if self.chance(0.05):
            content = b"[" * 30_000 + content
        (folder / "header.json").write_bytes(content)
        (folder / "events.ring").write_bytes(_file("events", 1024, 512, self._events()))
        (folder / "samples.ring").write_bytes(self._samples())
        (folder / "progress.ring").write_bytes(
            _file("progress", 1024, 2, [(5, self._json(self._progress()))])
        )
        for name in ("seconds.ring", "minutes.ring"):
            if self.chance(0.5):
                (folder / name).write_bytes(
                    self.choose.randbytes(self.choose.choice((0, 10, 9000)))
                )
        self._write_texts(folder)
        if self.chance(0.3):
            end = self.spoilt(
                {"reason": self.choose.choice(("quit", "exit", "x")), "time": 1.0}, 0.4
            )
            if end.get("reason") in ("quit", None) or self.chance(0.2):
                (folder / "end.json").write_bytes(self._json(end))
        self._plant(folder)
        return folder

    def _json(self, value: Any) -> bytes:
        return json.dumps(value).encode("utf-8", "surrogatepass")

    def _header(self) -> dict[str, Any]:
        where = "../" * 9 + str(self.outside).lstrip("/")
        group = {
            "path": f"/{where}",
            "version": self.choose.choice((1, 2, 3)),
            "limited_by": f"/../{where}",
        }
        here = vars(Place.here()) if self.chance(0.9) else {"host": self.text()}
        return {
            "format": self.choose.choice(([2, 0], [2, 99], [2, 0])),
            **self.spoilt(
                {
                    "pid": self.choose.choice((1, os.getpid(), self.pid)),
                    "start_time": 1,
                    "started": time.time(),
                    "kernel_id": f"kernel-{self.choose.randrange(10**9)}",
                    "notebook_path": self.text(),
                    "kernel_name": self.text()[:40],
                    "parent_pid": self.choose.choice((1, 2**40, -1)),
                    "watcher_pid": self.choose.choice((None, 2**40, "1", os.getpid())),
                    "versions": self.spoilt({"python": "3.11", self.text(): self.text()}),
                    "guard": self.spoilt(
                        {"growth": {"state": "on", "text": self.text()}, "problems": [self.text()]}
                    ),
                    "memory_group": group if self.chance(0.7) else self.atom(),
                    "server": {"exit": {"signal": "SIGKILL", "how": "waitid"}},
                    "confidence": "certain",
                }
            ),
            **here,
        }

    def _events(self) -> list[tuple[int, bytes]]:
        now = time.time()
        made = []
        for number in range(self.choose.choice((0, 3, 20, 200))):
            kind = self.choose.choice(
                ("cell_start", "cell_end", "fit_start", "fit_ready", "fit_end", "epoch_end", "checkpoint", "oom", "exit")
            )  # fmt: skip
            event = {
                "n": self.choose.choice((number, 2**63, -1)),
                "t": now - 10 + number / 100,
                "m": float(number),
                "kind": kind,
                "execution_count": number,
                "head": self.text(),
                "fit_id": 1,
                "what": self.choose.choice(("fit", self.text())),
                "batch_size": self.choose.choice((32, 10**300, -5)),
                "batch_shape": [32, 10**30, "x"],
                "parameter_count": 10**18,
                "epoch": self.choose.choice((1, 10**15)),
                "logs": {self.text(): self.choose.choice((math.nan, 1e308, 10**400, "x"))},
                "arrays": [self.spoilt({"name": self.text(), "bytes": 10**12}), self.atom()],
                "path": str(self.outside / "file"),
                "written": self.choose.choice((now, 1e300)),
                "rss_bytes": self.choose.choice((1, 10**30)),
            }
            made.append((3, self._json(self.spoilt(event))[:990]))
            if self.chance(0.2):
                made.append((self.choose.choice((4, 5, 9, 65535)), self.choose.randbytes(50)))
        return made

    def _samples(self) -> bytes:
        columns = [{"name": self.choose.choice(_METRICS) if self.chance(0.9) else self.text(), "unit": "B"} for _ in range(6)]  # fmt: skip
        rows = []
        for _ in range(self.choose.choice((0, 1, 50, 1200))):
            values = [
                self.choose.choice(_NUMBERS) if self.chance(0.3) else 4.0 * _GIB for _ in columns
            ]
            rows.append((1, struct.pack(f"<{len(values)}d", *values)))
        types = {"1": {"name": "sample", "number": "f64", "columns": columns}}
        if self.chance(0.2):
            types = self.spoilt(types, 0.5)
        return _file("samples", 128, self.choose.choice((1200, 2**31, 0, -1)), rows, types)

    def _progress(self) -> dict[str, Any]:
        return self.spoilt(
            {
                "what": "fit",
                "fit_id": 1,
                "active": True,
                "epoch": 3,
                "step": 10**12,
                "logs": {"loss": math.inf},
            }
        )

    def _write_texts(self, folder: Path) -> None:
        lines = [self.text() for _ in range(self.choose.choice((0, 5, 300)))]
        content = "\n".join(lines).encode("utf-8", "replace")
        (folder / f"stderr.{self.choose.choice((0, 1, 10**30))}.txt").write_bytes(content)
        if self.chance(0.5):
            (folder / "fault.txt").write_bytes(b"\n".join(c.encode() for c in _claims(1)[-8:]))
        for name in ("SIGKILL", "SIGTERM", "certain", "<img src=x>", "a" * 200):
            if self.chance(0.2):
                (folder / f"signal-{name}.txt").write_text(
                    "Stack (most recent call first):\n  File x"
                )

    def _plant(self, folder: Path) -> None:
        """Links and other things in the place of files, or beside them."""
        name = self.choose.choice(("samples.ring", "events.ring", "fault.txt", "end.json", "stderr.7.txt", "signal-SIGILL.txt"))  # fmt: skip
        path, kind = folder / name, self.choose.randrange(9)
        if kind < 6:
            path.unlink(missing_ok=True)
        if kind == 0:
            path.symlink_to(self.outside / "file")
        elif kind == 1:
            os.link(self.outside / "file", path)
        elif kind == 2:
            os.mkfifo(path)
        elif kind == 3:
            path.mkdir()
            (path / "link").symlink_to(self.outside)
        elif kind == 4:
            with path.open("wb") as endless:
                endless.truncate(1 << 40)
        elif kind == 5:
            path.symlink_to("/dev/zero")
        elif kind == 6:
            for number in range(200):
                (folder / f"signal-{number}.txt").write_text("x")
        elif kind == 7:
            (folder / "deep" / "/".join("d" * 60)).mkdir(parents=True)


def _file(
    name: str, size: int, capacity: int, records: list[tuple[int, bytes]], types: Any = None
) -> bytes:
    """A file of records with right CRCs, whatever stands in it. Laid out as FORMAT.md says."""
    header = {"format": [2, 0], "name": name, "record_bytes": size, "capacity": capacity, "types": types or {}, "created": 1.0}  # fmt: skip
    told = json.dumps(header).encode("utf-8", "replace")[:4000]
    block = (struct.pack("<8sII", b"TFGRECS\n", len(told), zlib.crc32(told)) + told).ljust(
        4096, b"\0"
    )
    made = [block, block]
    for number, (kind, payload) in enumerate(records, 1):
        length = (
            len(payload) if number % 7 else 65_535
        )  # now and then a wrong length under a right CRC
        payload = payload[: size - 32]
        head = struct.pack("<HHQdd", kind, length, number, float(number), time.time() - 5)
        body = head + payload
        made.append((struct.pack("<I", zlib.crc32(body)) + body).ljust(size, b"\0"))
    return b"".join(made)
