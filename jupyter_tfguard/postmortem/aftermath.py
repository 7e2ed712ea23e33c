"""Evidence that can still be read after an unwatched kernel died: counters of its cgroup, and the operating system's log.

It was read late, by a process that did not watch the kernel, so findings based on it are never more than *likely*.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..collectors.cgroup import limit_hits
from ..collectors.host import HostCollector
from ..collectors.os_log import SystemLogReader
from ..errors import SourceUnavailable
from ..memory.groups import groups_at
from ..record.contents import RecordingContents
from ..record.facts import Counters, GroupCounters, SystemLog, SystemLogLine

_BEFORE_CRASH_SECONDS = 5.0


def system_log_after(died: float) -> SystemLog:
    """Lines of the system log, starting shortly before the last sign of life."""
    reader = SystemLogReader(from_start=True)
    try:
        lines = reader.lines(died - _BEFORE_CRASH_SECONDS)
        kept = tuple(SystemLogLine(when, text) for when, text in lines)
        return SystemLog(reader.reason is None, reader.reason, kept)
    finally:
        reader.close()


def counters_around(contents: RecordingContents) -> dict[str, Any]:
    """``{"before", "after"}`` as :class:`Counters`: the kernel's last sample, and a reading taken now.

    The recording's header names the groups by their cgroup paths. Their location in the file system is determined here
    and never taken from the header.
    """
    last = contents.samples[-1].values if contents.samples else {}
    before = Counters(
        contents.samples[-1].time if contents.samples else 0.0,
        tuple(_groups_before(contents.header.get("memory_group"), last)),
        host_oom_kill_count=_whole(last.get("host.oom_kill_count")),
        host_available_bytes=_whole(last.get("host.available_bytes")),
        host_total_bytes=_whole(last.get("host.total_bytes")),
    )
    try:
        with contextlib.closing(HostCollector()) as collector:
            host = collector.collect()
    except SourceUnavailable:
        host = {}
    after = Counters(
        time.time(),
        tuple(_groups_now(before.groups)),
        host_oom_kill_count=_whole(host.get("host.oom_kill_count")),
    )
    return {"before": dataclasses.asdict(before), "after": dataclasses.asdict(after)}


def _groups_before(claimed: object, last: Mapping[str, float]) -> Iterator[GroupCounters]:
    """The kernel's group, and the group whose limit applied at its start if that is a different one, from the last sample.

    How often a limit was hit is in the last of them, for the group and its ancestors together.
    """
    if not isinstance(claimed, dict) or not isinstance(claimed.get("path"), str):
        return
    version = 1 if claimed.get("version") == 1 else 2
    own, binding = claimed["path"], claimed.get("limited_by")
    limits = {
        "limit_bytes": _whole(last.get("cgroup.limit_bytes")),
        "used_bytes": _whole(last.get("cgroup.used_bytes")),
        "oom_count": _whole(last.get("cgroup.oom_count")),
        "failcnt_count": _whole(last.get("cgroup.failcnt_count")),
    }
    kills = _whole(last.get("cgroup.oom_kill_count"))
    if binding == own or not isinstance(binding, str):
        yield GroupCounters(own, version, own=True, oom_kill_count=kills, **limits)
        return
    yield GroupCounters(own, version, own=True, oom_kill_count=kills)
    yield GroupCounters(binding, version, own=False, **limits)


def _groups_now(before: Sequence[GroupCounters]) -> Iterator[GroupCounters]:
    for group in before:
        try:
            found = groups_at(group.path, group.version)[0]
            counters = found.counters() | {"own": group.own}
            if group is before[-1]:  # as the sample that was read before
                counters |= limit_hits(groups_at(before[0].path, before[0].version))
        except SourceUnavailable:
            continue
        yield GroupCounters(**counters)


def _whole(value: float | None) -> int | None:
    return None if value is None or not math.isfinite(value) else int(value)
