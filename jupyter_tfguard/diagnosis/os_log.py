"""OOM kills as the Linux kernel tells them in its log. Source: linux mm/oom_kill.c, the forms since 5.4.

Process names inside a line are chosen by the process and may hold commas, brackets and quotes; so numbers are taken
from the end of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=python3,pid=41,uid=0
_SUMMARY = re.compile(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w{1,30}),.*,pid=(?P<pid>\d{1,10}),uid=\d{1,10}$"
)
_LIMIT_GROUP = re.compile(r",oom_memcg=(?P<group>/.*?),task_memcg=")
# Memory cgroup out of memory: Killed process 41 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 ...
_KILLED = re.compile(
    r"(?P<prefix>Out of memory|Memory cgroup out of memory)(?: \(oom_kill_allocating_task\))?: "
    r"Killed process (?P<pid>\d{1,10}) \(.*\),? (?:UID:\d+,? )?total-vm:\d+kB, anon-rss:(?P<anon>\d{1,15})kB"
)


@dataclass(frozen=True)
class OomKill:
    """One kill.

    Attributes:
        pid: The victim.
        by_limit: True for a cgroup's limit, False for the whole machine, None when the line does not say.
        anonymous_bytes: Its anonymous resident memory when it was killed; None when the line does not say.
        line: The raw line.
    """

    pid: int
    by_limit: bool | None
    anonymous_bytes: int | None
    line: str


def oom_kills(lines: list[str]) -> list[OomKill]:
    """The kills in these lines, in order; a summary line and a kill line of the same victim count once."""
    found: dict[int, OomKill] = {}
    for line in lines:
        if summary := _SUMMARY.search(line):
            pid = int(summary["pid"])
            by_limit = summary["constraint"] == "CONSTRAINT_MEMCG" and bool(
                _LIMIT_GROUP.search(line)
            )
            old = found.get(pid)
            found[pid] = OomKill(
                pid, by_limit, old.anonymous_bytes if old else None, old.line if old else line
            )
        elif killed := _KILLED.search(line):
            pid = int(killed["pid"])
            old = found.get(pid)
            by_prefix = killed["prefix"].startswith("Memory cgroup")
            found[pid] = OomKill(
                pid, old.by_limit if old else by_prefix, int(killed["anon"]) * 1024, line
            )
    return list(found.values())
