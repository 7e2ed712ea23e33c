"""A group of deaths in words: its line in the list and its report, in the same JSON as those of a single death."""

from __future__ import annotations

import math
import time
from typing import Any

from ..diagnosis.finding import Diagnosis
from ..record.counted import KERNELS_LIMIT, Death, Group
from ..units import human_seconds
from .wire import Json, utc_text

_CAUSES_IN_TITLE = 3


def counted_death(bundle: Json, diagnosis: Diagnosis) -> Death:
    """What a group keeps of one death."""
    identity = bundle["identity"]
    best = diagnosis.best
    died = float(identity.get("died") or 0.0)
    now = time.time()
    return Death(
        kernel_id=identity.get("kernel_id"),
        kernel_name=identity.get("kernel_name"),
        notebook_path=identity.get("notebook_path"),
        cause=best.cause,
        confidence=best.confidence.value,
        short_title=best.short_title,
        died=died if math.isfinite(died) and 0 < died < now + 86400 else now,
        kernel_alive=bool((bundle.get("server") or {}).get("kernel_alive")),
    )


def death_of_entry(entry: Json, died: float) -> Death:
    """The same of a report that made room for newer ones.

    Args:
        entry: Its line in the list.
        died: Unix seconds.
    """
    return Death(
        kernel_id=entry.get("kernel_id"),
        kernel_name=entry.get("kernel_name"),
        notebook_path=entry.get("notebook_path"),
        cause=str(entry.get("cause")),
        confidence=str(entry.get("confidence")),
        short_title=str(entry.get("short_title") or entry.get("cause")),
        died=died,
        kernel_alive=bool(entry.get("kernel_alive")),
    )


def render_group(group: Group) -> tuple[Json, Json]:
    """Its line in the list, and its report."""
    entry = _entry(group)
    report = entry | {
        "chips": [_deaths(group), _kernels(group)],
        "evidence": [{"source": "tfguard", "text": text} for text in entry["because"]],
        "against": [],
        "not_checked": [
            "What each kernel was doing: only the first deaths within ten minutes, and the newest when many kernels "
            "die at once, have a report of their own. These were counted, and their recordings removed."
        ],
        "advice": _advice(group),
        "other_findings": [
            {
                "cause": c.cause,
                "confidence": c.confidence,
                "title": f"{c.count:,} × {c.short_title}",
            }
            for c in group.causes[1:]
        ],
        "same_before_count": 0,
        "activity": [],
        "memory": None,
        "left": {"metrics": None, "checkpoint": None},
        "arrays": [],
        "native_tail": [],
        "python_stack": [],
        "versions": {},
    }
    return entry, report


def _entry(group: Group) -> Json:
    top = group.causes[0]
    span = f"between {_moment(group.first)} and {_moment(group.last)} UTC"
    counts = [f"{c.count:,} × {c.short_title} ({c.cause}, {c.confidence})" for c in group.causes]
    return {
        "id": group.id,
        "kernel_id": group.kernel_id,
        "kernel_name": group.kernel_name,
        "pid": None,
        "notebook_path": group.notebook_path,
        "cause": top.cause,
        "confidence": top.confidence,
        "title": _title(group),
        "short_title": f"{group.deaths_count:,} × {top.short_title}"
        if len(group.causes) == 1
        else f"{group.deaths_count:,} deaths, most: {top.short_title}",
        "because": [f"{_deaths(group)} of {_kernels(group)} {span}", *counts],
        "signal": None,
        "where": None if group.one_kernel else _kernels(group),
        "cell": None,
        "died_at": utc_text(group.last),
        "kernel_alive": group.kernel_alive,
        "next_step": None,
        "group": {
            "deaths_count": group.deaths_count,
            "kernels_count": group.kernels_count,
            "kernels_count_is_exact": group.kernels_count < KERNELS_LIMIT,
            "one_kernel": group.one_kernel,
            "first_at": utc_text(group.first),
            "last_at": utc_text(group.last),
            "causes": [
                {
                    "cause": c.cause,
                    "short_title": c.short_title,
                    "confidence": c.confidence,
                    "count": c.count,
                }
                for c in group.causes
            ],
        },
    }


def _moment(unix_seconds: float) -> str:
    """``2026-11-21 02:14:07``."""
    return utc_text(unix_seconds)[:19].replace("T", " ")


def _title(group: Group) -> str:
    """``This kernel died 995 more times in 17 min: 990 × Killed from outside, 5 × Segmentation fault.``"""
    listed = [f"{c.count:,} × {c.short_title}" for c in group.causes[:_CAUSES_IN_TITLE]]
    others = len(group.causes) - len(listed)
    causes = ", ".join(listed) + (f" and {others} other causes" if others > 0 else "")
    span = human_seconds(max(1.0, group.last - group.first))
    count = group.deaths_count
    times = f"{count:,} more time{'' if count == 1 else 's'}"
    if not group.one_kernel:
        what = "lost child processes" if group.kernel_alive else "died"
        return f"{_kernels(group)[:1].upper()}{_kernels(group)[1:]} {what} within {span}, {_deaths(group)}: {causes}."
    if group.kernel_alive:
        return f"This kernel lost child processes {times} in {span}: {causes}."
    return f"This kernel died {times} in {span}: {causes}."


def _deaths(group: Group) -> str:
    what = "child death" if group.kernel_alive else "death"
    return f"{group.deaths_count:,} {what}{'' if group.deaths_count == 1 else 's'}"


def _kernels(group: Group) -> str:
    count = group.kernels_count
    if count >= KERNELS_LIMIT:
        return f"at least {count:,} kernels"
    return f"{count:,} kernel{'' if count == 1 else 's'}"


def _advice(group: Group) -> list[dict[str, Any]]:
    if group.one_kernel:
        return [
            {
                "title": "Stop the loop, then read the first reports.",
                "text": "Shut the kernel down, so that it is not restarted again. The first deaths of a loop have "
                "reports of their own in the list, and they say more than this one.",
                "code": None,
            }
        ]
    return [
        {
            "title": "Look for what the kernels have in common.",
            "text": "Many kernels that die at once mostly share a cause: the machine's memory, a limit around all of "
            "them, a disk, somebody who ended them. The newest have reports of their own in the list.",
            "code": None,
        }
    ]
