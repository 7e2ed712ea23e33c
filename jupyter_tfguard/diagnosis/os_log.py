"""Parse the operating system's log: OOM kills, faults that the NVIDIA driver reports (Xid), failing memory and storage.

A process chooses its own name, which may contain commas, brackets and quotes, so numbers are read from the end of the
line. Source: linux mm/oom_kill.c and mm/memcontrol.c, the forms since 3.x; NVIDIA open-gpu-kernel-modules
src/nvidia/src/kernel/gpu/rc/kernel_rc.c.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .catalog import table
from .log_lines import LONGEST_LINE, Haystack

# oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=python3,pid=41,uid=0
_SUMMARY = re.compile(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w{1,30}),.{0,4000}?,task=(?P<name>.{0,64}),pid=(?P<pid>\d{1,10}),uid=\d{1,10}\s*$"
)
_LIMIT_GROUP = re.compile(r",oom_memcg=(?P<group>/.*?),task_memcg=")
# Memory cgroup out of memory: Killed process 41 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 ...
# Out of memory: Kill process 41 (python) score 980 or sacrifice child                                   (up to 5.0)
# Killed process 41 (python), UID 0, total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB             (up to 5.3)
_KILLED = re.compile(
    r"(?:(?P<prefix>Out of memory|Memory cgroup out of memory)(?: \(oom_kill_allocating_task\))?: )?"
    r"Kill(?:ed)? process,? (?:(?P<pid>\d{1,10}|[^\s(]{1,16}),? )?(?:\((?P<name>[^\n]{0,64}?)\)"
    r"(?:,? (?:UID:? ?\d{1,10},? )?total-vm:\d{1,15}kB(?:,? anon-rss:(?P<anon>\d{1,15})kB)?|,? score -?\d{1,6} or sacrifice child)"
    r"|\((?P<name_only>[^)\n]{1,64})\))"
)
# The same, when its author cut out who it was: "Out of memory: Killed process [...]"
_KILLED_SOMEONE = re.compile(
    r"(?P<prefix>Out of memory|Memory cgroup out of memory): Kill(?:ed)? process\b"
)
# oom_reaper: reaped process 41 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
_REAPED = re.compile(r"oom_reaper: reaped process (?P<pid>\d{1,10}) \((?P<name>.{0,64}?)\)")
# memorystatus: killing_largest_compressed_process pid 7781 [python3.11] 21012 pages                      (macOS)
_JETSAM = re.compile(
    r"memorystatus: killing_\w{1,60} (?:process )?(?:pid )?(?P<pid>\d{1,10}) \[(?P<name>[^\]]{1,64})\]"
)
# python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=991: it asked, and need not be the victim
_ASKED = re.compile(r"(?:^|[\s\"])(?P<name>\S{1,16}) invoked oom-killer:")
# The beginning of one of these lines that a terminal or web page wrapped, and the timestamp before its continuation.
_CUT = re.compile(
    r"(?:Memory cgroup(?: out(?: of)?)?|[Oo]ut of memory:?|Kill(?:ed)? process(?: \d{1,10},?)?|oom-kill:constraint=CONSTRAINT_\w{1,30},.{0,4000})\s*$"
)
_STAMP = re.compile(r"^\[[^\]]{1,40}\] ?")
# Task in /docker/4c0 killed as a result of limit of /docker/4c0                                          (up to 4.20)
_LIMIT_OF = re.compile(r"Task in .{0,400} killed as a result of limit of (?P<group>/\S{0,400})")
# [81233.120] x      [Tue Nov  3 11:02:10 2026] x      Nov  3 11:02:10 host kernel: x      oom-kill:...      Killed process 41 ...
_SYSTEM = re.compile(
    r"^\[ *\d{1,10}\.\d{1,9}\]|^\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\]|\bkernel: |^oom-kill:"
    r"|^(?:Memory cgroup out|Out) of memory:$|^Task in /|^oom_reaper: |^NVRM: |^task_memcg="
    r"|^(?:memory|memory\+swap|swap|kmem): usage \d|invoked oom-killer"
)
# NVRM: Xid (PCI:0000:c2:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
# NVRM: Xid (0000:02:00): 31, Ch 00000010, ...
_XID = re.compile(
    r"(?:NVRM: |^)Xid \((?:PCI:)?(?P<place>[0-9a-fA-F:.]{4,20})[^)]{0,40}\): (?P<number>\d{1,4})\b,?"
    r"(?: pid='?(?P<pid>\d{1,10}|<[a-z ]{1,20}>)'?,?)?(?: name=(?P<name>[^,]{0,64}),?)?"
)
# NVRM: Xid (PCI:0000:dc:00): 45, pid=41, name=python3, Ch 00000001 caused by previous Xid 149
_PREVIOUS = re.compile(r"caused by previous Xid (\d{1,4})\b")
_BUS = re.compile(
    r"NVRM: GPU (?:at )?(?:PCI:)?(?P<place>[0-9a-fA-F:.]{4,20}): GPU has fallen off the bus"
)
_FALLEN_OFF = 79
# Process and thread names of Python programs; the operating system cuts names to 15 characters.
_PYTHON_NAMES = re.compile(
    r"(?i)^(?:python|pypy|jupyter|ipython|ipykernel|papermill|ray::|ray_|tf_|pt_|conda|uvicorn|gunicorn|ZMQbg)"
)

OTHER_NAMES = re.compile(
    r"(?i)^(?:java|node|mysqld|mariadbd|postgres|mongod|redis|memcached|elastic|chrom|firefox|Web Content|Isolated Web|gnome|kde|plasma|"
    r"Xorg|systemd|dockerd|containerd|kubelet|nginx|apache|httpd|php|ruby|dotnet|code|electron|slack|teams|rsession|MATLAB|blender)"
)


@dataclass(frozen=True)
class OomKill:
    """One kill.

    Attributes:
        pid: The victim; None if the line does not show it.
        name: Name that the victim gave itself.
        by_limit: True for a cgroup's limit, False for the whole machine, None when the line does not say.
        anonymous_bytes: Its anonymous resident memory when it was killed; None when the line does not say.
        line: The raw line.
        group: The cgroup whose limit was reached; empty when no line says.
    """

    pid: int | None
    name: str
    by_limit: bool | None
    anonymous_bytes: int | None
    line: str
    group: str = ""


@dataclass(frozen=True)
class Xid:
    """One fault that the driver reported.

    Attributes:
        number: Number in NVIDIA's catalogue of faults.
        place: PCI address of the card.
        pid: The process that the driver names; None if the driver does not know it.
        name: Name that this process gave itself; empty when unknown.
        line: The raw line; for an event, a sentence.
        is_event: True if the driver reported it as an event. An event names the card, but no process.
    """

    number: int
    place: str
    pid: int | None
    name: str
    line: str
    is_event: bool = False


MEMORY = "memory"
STORAGE = "storage"
KILLS = "kills"


@dataclass(frozen=True)
class OsFault:
    """Failing memory or storage, recognised by a row of ``catalog/os_lines.toml``.

    Attributes:
        about, weight, says: Fields of the row.
        pid, name: The process that is ended because of it; None and "" if the line names none.
        device: The disk or server; empty if the line names none.
        line: The raw line.
    """

    about: str
    weight: str
    says: str
    pid: int | None
    name: str
    device: str
    line: str


def runs_python(name: str) -> bool:
    """True if the name suggests a Python process. This is a hint: a process can choose its own name."""
    return _PYTHON_NAMES.match(name) is not None


def is_of_system(line: str) -> bool:
    """True for a line of the operating system: it has a kernel timestamp or prefix, or is about a kill."""
    return (_SYSTEM.search(line) or _KILLED.search(line)) is not None


def oom_kills(lines: Sequence[str]) -> list[OomKill]:
    """The kills in these lines, in order; several lines about the same victim count once."""
    found: dict[int | None, OomKill] = {}
    group, begun = "", None
    for line in rejoined(lines):
        if "oom-kill:" not in line and "process" not in line and "limit of" not in line:
            continue
        if limit := _LIMIT_OF.search(line):
            group = limit["group"]
        elif summary := _SUMMARY.search(line):
            pid, named = int(summary["pid"]), _LIMIT_GROUP.search(line)
            by_limit = summary["constraint"] == "CONSTRAINT_MEMCG"
            known = found.get(pid) or OomKill(pid, summary["name"], None, None, line)
            found[pid] = replace(known, by_limit=by_limit, group=named["group"] if named else "")
        elif killed := _KILLED.search(line):
            number = int(killed["pid"]) if (killed["pid"] or "").isdigit() else None
            old, prefix = found.get(number), killed["prefix"] or begun
            # The next line names the thread's process, without the words before.
            begun = prefix if "or sacrifice child" in line else None
            if killed["name_only"] and not prefix and old is None:
                continue
            if old is None:
                limited = prefix.startswith("Memory cgroup") if prefix else bool(group) or None
                old = OomKill(number, "", limited, None, line, group if limited else "")
            name = killed["name"] or killed["name_only"] or ""
            size = int(killed["anon"]) * 1024 if killed["anon"] else old.anonymous_bytes
            found[number] = replace(old, name=name, anonymous_bytes=size, line=line)
            group = ""
        elif someone := _KILLED_SOMEONE.search(line):
            limited = someone["prefix"].startswith("Memory cgroup")
            found.setdefault(None, OomKill(None, "", limited, None, line))
        elif jetsam := _JETSAM.search(line):
            pid = int(jetsam["pid"])
            found.setdefault(pid, OomKill(pid, jetsam["name"], False, None, line))
        elif reaped := _REAPED.search(line):
            pid = int(reaped["pid"])
            found.setdefault(pid, OomKill(pid, reaped["name"], None, None, line))
    return list(found.values())


def asked_in_vain(lines: Sequence[str]) -> list[OomKill]:
    """The processes that asked for memory when none was left: usual victims, for a log that names none."""
    limited = any("mem_cgroup_o" in line for line in lines) or None
    asked = (hit for line in lines if (hit := _ASKED.search(line)))
    return [OomKill(None, hit["name"], limited, None, hit.string) for hit in asked]


def rejoined(lines: Sequence[str]) -> Iterator[str]:
    """The lines, with wrapped lines about a kill joined again."""
    begun = ""
    for line in lines:
        whole = begun + _STAMP.sub("", line) if begun else line
        begun = ""
        if ("emory" in whole or "rocess" in whole or "oom-kill:" in whole) and (
            len(whole) < LONGEST_LINE and _CUT.search(whole) and not _SUMMARY.search(whole)
        ):
            begun = whole if whole.endswith(",") else f"{whole.rstrip()} "
        else:
            yield whole


def xids(lines: Iterable[str]) -> list[Xid]:
    """The driver's faults in these lines, in order; a repeated fault counts once."""
    found: dict[tuple[int, str, int | None], Xid] = {}
    for line in lines:
        if "NVRM:" not in line and not line.startswith("Xid ("):
            continue
        if hit := _XID.search(line):
            pid = int(hit["pid"]) if hit["pid"] and hit["pid"].isdigit() else None
            name = hit["name"] or ""
            first = _PREVIOUS.search(line)
            number = int(first[1] if first else hit["number"])
            xid = Xid(number, hit["place"], pid, "" if "<" in name else name, line)
        elif bus := _BUS.search(line):
            place = bus["place"].removesuffix(".0")
            if any(old.number == _FALLEN_OFF and old.place == place for old in found.values()):
                continue
            xid = Xid(_FALLEN_OFF, place, None, "", line)
        else:
            continue
        found.setdefault((xid.number, xid.place, xid.pid), xid)
    return list(found.values())


def os_faults(lines: Sequence[str]) -> list[OsFault]:
    """The faults of memory and storage in these lines, in order; a repeated fault counts once."""
    if not lines:
        return []
    haystack = Haystack(lines)
    found: dict[tuple[str, int | None, str], tuple[int, OsFault]] = {}
    for row, pattern in _fault_rows():
        for place in haystack.places(row["needles"]):
            parts = pattern.search(lines[place])
            if parts is None:
                continue
            named = {key: value or "" for key, value in parts.groupdict().items()}
            pid = int(named["pid"]) if named.get("pid") else None
            device = named.get("device", "")
            fault = OsFault(
                row["about"],
                row["weight"],
                row["says"],
                pid,
                named.get("name", ""),
                device,
                lines[place],
            )
            found.setdefault((row["id"], pid, device), (place, fault))
    return [fault for _, fault in sorted(found.values(), key=lambda pair: pair[0])]


@functools.cache
def _fault_rows() -> tuple[tuple[dict[str, Any], re.Pattern[str]], ...]:
    return tuple((row, re.compile(row.get("pattern", ""))) for row in table("os_lines")["line"])
