"""Collect everything that is known about one crash into a bundle.

Facts of the server and claims of the kernel are kept separate. Every text is redacted here, before it is written to a
disk that outlives the kernel.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..collectors.machine import machine
from ..collectors.ulimits import thread_limits
from ..decode import dict_of, number_of, text_of
from ..errors import RecordUnreadable
from ..metrics import Sample
from ..record.bundle import FORMAT, is_bundle_id, new_bundle_id
from ..record.contents import RecordingContents, read_recording
from ..record.facts import ExitFacts, ServerFacts, SystemLog
from ..record.identity import ProcessIdentity
from ..record.native_text import NATIVE_TEXT_FILES
from ..record.timeline import thinned_table
from ..redact import clean, clean_value
from .aftermath import counters_around, system_log_after
from .checkpoint_file import checkpoint_file
from .detect import Orphan

EVENT_LIMIT = 600
ROW_LIMIT = 1200
SUMMARY_ROW_LIMIT = 1000
LINE_LIMIT = 400
LINE_LENGTH_LIMIT = 2000

_SEEN = ("server", "system_log", "checkpoint_file", "machine", "thread_limits")

Bundle = dict[str, Any]


def capture(
    *,
    identity: ProcessIdentity,
    kernel_id: str | None = None,
    kernel_name: str | None = None,
    notebook_path: str | None = None,
    recording: Path | RecordingContents | None = None,
    server: ServerFacts | None = None,
    system_log: SystemLog | None = None,
) -> Bundle:
    """The bundle of one crash.

    Args:
        identity: The kernel's process.
        kernel_id, kernel_name, notebook_path: What the server knows; None is replaced by the value in the recording's header.
        recording: The kernel's recording: its folder, or its contents; None when there is none.
        server: Facts of the watcher; None when the kernel was not watched.
        system_log: The operating system's log; None when it was not read.
    """
    problems = []
    contents = recording if isinstance(recording, RecordingContents) else None
    if isinstance(recording, Path):
        try:
            contents = read_recording(recording)
        except RecordUnreadable as bad:
            problems.append(str(bad))
    header = contents.header if contents else {}
    died = server.died if server else _last_sign_of_life(contents)
    return {
        "format": list(FORMAT),
        "id": new_bundle_id(identity.pid, died),
        "created": time.time(),
        "identity": {
            "pid": identity.pid,
            "start_time": identity.start_time,
            "kernel_id": kernel_id or _text(header.get("kernel_id")),
            "kernel_name": kernel_name or _text(header.get("kernel_name")),
            "notebook_path": _text(notebook_path) or _text(header.get("notebook_path")),
            "died": died,
        },
        "server": _seen(server) if server else None,
        "kernel": _claims(contents) if contents else None,
        "system_log": _log(system_log) if system_log else None,
        "checkpoint_file": checkpoint_file(contents.journal) if contents and server else None,
        "problems": problems,
        "machine": machine() if server else None,
        "thread_limits": _thread_limits(header) if server else None,
    }


def capture_orphan(orphan: Orphan) -> Bundle:
    """The bundle of a kernel that died unwatched: its recording, and the evidence that can still be read now.

    If a server saw the end and could not save its report, the bundle has what the server saw, and the same id.
    """
    bundle = capture(identity=orphan.identity, recording=orphan.contents, system_log=None)
    if orphan.contents.seen is not None:
        return _with_seen(bundle, orphan.contents.seen)
    bundle["parent_gone"] = orphan.parent_is_gone
    bundle["judged_by"] = orphan.judged_by.value
    # On another machine, the same process ids and group paths belong to other processes.
    if orphan.same_processes:
        died = float(bundle["identity"]["died"])
        bundle["system_log"] = _log(system_log_after(died))
        bundle["counters"] = clean_value(counters_around(orphan.contents))
        bundle["checkpoint_file"] = checkpoint_file(orphan.contents.journal)
        bundle["machine"] = machine()
        bundle["thread_limits"] = _thread_limits(orphan.contents.header)
    return bundle


def seen_part(bundle: Bundle) -> Bundle:
    """What the server saw: the bundle without the part that is in the kernel's recording."""
    return {name: bundle[name] for name in ("id", "identity", *_SEEN)}


def _with_seen(bundle: Bundle, seen: dict[str, Any]) -> Bundle:
    whose = dict_of(seen.get("identity"))
    named = {n: _text(whose.get(n)) for n in ("kernel_id", "kernel_name", "notebook_path")}
    if (died := number_of(whose.get("died"))) is not None:
        bundle["identity"]["died"] = float(died)
    bundle["identity"] |= {name: value for name, value in named.items() if value}
    if is_bundle_id(seen.get("id")):
        bundle["id"] = seen["id"]
    return bundle | {name: seen.get(name) for name in _SEEN}


def _thread_limits(header: Mapping[str, Any]) -> dict[str, int | None]:
    """Those of the kernel's recording; else those of this process, which its kernels usually share."""
    claimed = header.get("thread_limits")
    if not isinstance(claimed, dict):
        return thread_limits()
    return {name: claimed.get(name) for name in ("group_count", "user_count")}


def _seen(server: ServerFacts) -> dict[str, Any]:
    # The rows are thousands of numbers, with no text to redact.
    facts = clean_value(dataclasses.asdict(dataclasses.replace(server, rows=())))
    assert isinstance(facts, dict)
    return facts | {"rows": [list(row) for row in server.rows]}


def _log(system_log: SystemLog) -> dict[str, Any]:
    lines = [{"time": line.time, "text": clean(line.text)} for line in system_log.lines]
    reason = None if system_log.reason is None else clean(system_log.reason)
    return {"readable": system_log.readable, "reason": reason, "lines": lines}


def _claims(contents: RecordingContents) -> dict[str, Any]:
    return {
        "header": clean_value(contents.header),
        "events": [clean_value(event) for event in contents.events[-EVENT_LIMIT:]],
        "samples": _table(contents.samples[-ROW_LIMIT:]),
        "seconds": thinned_table(contents.seconds, SUMMARY_ROW_LIMIT),
        "minutes": thinned_table(contents.minutes, SUMMARY_ROW_LIMIT),
        "progress": clean_value(contents.progress),
        "gpu_memory": contents.gpu_memory,
        "stderr_tail": _lines(contents.stderr_tail),
        "stderr_time": _last_written(contents.path.glob(NATIVE_TEXT_FILES)),
        "fault_text": _lines(contents.fault_text),
        "fault_time": _last_written([contents.path / "fault.txt"]),
        "signal_texts": {clean(name): _lines(t) for name, t in contents.signal_texts.items()},
        "end": clean_value(contents.end),
        "exit": None
        if contents.exit_status is None
        else dataclasses.asdict(ExitFacts.of_status(contents.exit_status, "helper")),
        "problems": contents.problems,
    }


def _table(samples: list[Sample]) -> dict[str, Any]:
    names = sorted({name for sample in samples for name in sample.values})
    rows = [[s.time, *(_finite(s.values.get(name)) for name in names)] for s in samples]
    return {"columns": ["time", *names], "rows": rows}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _lines(text: str) -> list[str]:
    lines = [line.rstrip()[:LINE_LENGTH_LIMIT] for line in clean(text).split("\n")]
    return [line for line in lines if line][-LINE_LIMIT:]


def _text(value: object) -> str | None:
    found = text_of(value)
    return None if found is None else clean(found)[:1000]


def _last_sign_of_life(contents: RecordingContents | None) -> float:
    """Unix seconds of the newest entry in the recording: the best estimate of the time of the crash from files alone."""
    if contents is None:
        return time.time()
    newest = [float(event["t"]) for event in contents.events[-1:]]
    newest += [sample.time for sample in contents.samples[-1:]]
    signals = (contents.path / f"signal-{name}.txt" for name in contents.signal_texts)
    native = contents.path.glob(NATIVE_TEXT_FILES)
    written = _last_written([*native, contents.path / "fault.txt", *signals])
    newest += [written] if written is not None else []
    return min(max(newest), time.time()) if newest else time.time()


def _last_written(paths: Iterable[Path]) -> float | None:
    """Unix seconds when the newest of these files was last written to; None if all are empty or missing."""
    found = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        if status.st_size:
            found.append(status.st_mtime)
    return max(found, default=None)
