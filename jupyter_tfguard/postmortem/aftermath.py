"""What can still be read after a kernel died unwatched: counters of its cgroup, and the operating system's log.

All of it was read late and by somebody who was not there; a diagnosis never makes more than *likely* of it.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from ..collectors.cgroup import groups_at
from ..collectors.host import HostCollector
from ..collectors.os_log import SystemLogReader
from ..errors import SourceUnavailable
from ..record.facts import Counters, GroupCounters, SystemLog, SystemLogLine
from ..record.recording import RecordingContents

_BEFORE_DEATH_SECONDS = 5.0


def system_log_after(died: float) -> SystemLog:
    """Lines of the system log from just before the last sign of life on."""
    reader = SystemLogReader(from_start=True)
    try:
        lines = reader.lines(died - _BEFORE_DEATH_SECONDS)
        kept = tuple(SystemLogLine(when, text) for when, text in lines)
        return SystemLog(reader.reason is None, reader.reason, kept)
    finally:
        reader.close()


def counters_around(contents: RecordingContents) -> dict[str, Any]:
    """``{"before", "after"}`` as :class:`Counters`: the kernel's own last sample, and a reading of now.

    The group is named by its path in the recording's header; where it lies is looked up here, never taken from there.
    """
    last = contents.samples[-1].values if contents.samples else {}
    group = contents.header.get("memory_group")
    before_groups: tuple[GroupCounters, ...] = ()
    after_groups: tuple[GroupCounters, ...] = ()
    if isinstance(group, dict) and isinstance(group.get("path"), str):
        path, version = group["path"], 1 if group.get("version") == 1 else 2
        before_groups = (
            GroupCounters(
                path,
                version,
                own=True,
                limit_bytes=_whole(last.get("cgroup.limit_bytes")),
                used_bytes=_whole(last.get("cgroup.used_bytes")),
                oom_kill_count=_whole(last.get("cgroup.oom_kill_count")),
                failcnt_count=_whole(last.get("cgroup.failcnt_count")),
                oom_count=_whole(last.get("cgroup.oom_count")),
            ),
        )
        after_groups = _groups_now(path, version)
    try:
        host = HostCollector().collect()
    except SourceUnavailable:
        host = {}
    before = Counters(
        contents.samples[-1].time if contents.samples else 0.0,
        before_groups,
        host_oom_kill_count=_whole(last.get("host.oom_kill_count")),
        host_available_bytes=_whole(last.get("host.available_bytes")),
        host_total_bytes=_whole(last.get("host.total_bytes")),
    )
    after = Counters(
        time.time(), after_groups, host_oom_kill_count=_whole(host.get("host.oom_kill_count"))
    )
    return {"before": dataclasses.asdict(before), "after": dataclasses.asdict(after)}


def _groups_now(path: str, version: int) -> tuple[GroupCounters, ...]:
    try:
        groups = groups_at(path, version)[:1]
    except SourceUnavailable:
        return ()
    return tuple(
        GroupCounters(
            g.path,
            g.version,
            g.own,
            g.limit_bytes(),
            g.used_bytes(),
            g.peak_bytes(),
            g.oom_count(),
            g.oom_kill_count(),
            g.failcnt_count(),
        )
        for g in groups
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
