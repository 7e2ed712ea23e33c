"""Reads the intact parts of a recording."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..decode import json_object
from ..errors import FolderUnusable, RecordTooNew, RecordUnreadable
from ..metrics import Sample
from ..private_files import PrivateFolder
from . import journal, newest, series
from .events import Event, events_of
from .late_stderr import EXIT
from .native_text import stderr_end
from .recording import (
    END,
    EVENTS,
    FAULT,
    GPU_MEMORY,
    HEADER,
    MINUTES,
    PROGRESS,
    SAMPLES,
    SECONDS,
    SEEN,
    SIGNAL_PREFIX,
)
from .records import FORMAT, RecordFile, major_of, read_records
from .series import StretchSummary

# No kernel is ended by more kinds of signals. A folder with more such files is forged.
SIGNALS_LIMIT = 32
_TEXT_LIMIT_BYTES = 64 * 1024
_HIGHEST_STATUS = 0xFFFF
# The guard writes no larger file. A larger file is damaged or forged, and is not read to its end.
RECORDS_LIMIT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class RecordingContents:
    """The content of a recording. All but `seen` is self-reported by the kernel. Damaged or absent parts are empty.

    `exit_status` is as of wait(2), written by the helper process of a kernel without a watcher.
    `seen` is the bundle of a server that saw the end and could not save its report, without the part of the kernel.
    """

    path: Path
    header: dict[str, Any]
    events: list[dict[str, Any]]
    samples: list[Sample]
    seconds: list[StretchSummary]
    minutes: list[StretchSummary]
    progress: dict[str, Any] | None
    stderr_tail: str
    fault_text: str
    signal_texts: dict[str, str]
    end: dict[str, Any] | None
    gpu_memory: list[dict[str, Any]] | None = None
    seen: dict[str, Any] | None = None
    exit_status: int | None = None
    problems: list[str] = field(default_factory=list)

    @cached_property
    def journal(self) -> list[Event]:
        """The events that this version knows, in order; `events` are all of them, as they were written."""
        return events_of(self.events)


def read_recording(path: Path) -> RecordingContents:
    """Read the intact parts of a recording. The kernel may be running or dead.

    Raises:
        RecordUnreadable: There is no such folder, or its header cannot be read.
        RecordTooNew: A newer major format.
    """
    if not path.is_dir():
        raise RecordUnreadable(f"There is no recording at {path}.")
    try:
        folder = PrivateFolder(path, make=False)
    except FolderUnusable as bad:
        raise RecordUnreadable(str(bad)) from bad
    header = _header(folder)
    if header is None:
        raise RecordUnreadable(f"The header of the recording {path.name} is missing or damaged.")
    major = major_of(header)
    if major is None:
        raise RecordUnreadable("The header of the recording has no format number.")
    if major > FORMAT[0]:
        raise RecordTooNew(f"The recording {path.name}", major, FORMAT[0])
    problems: list[str] = []
    files = {
        name: _records(folder, name, problems)
        for name in (SAMPLES, SECONDS, MINUTES, EVENTS, PROGRESS, GPU_MEMORY)
    }
    names = folder.names()
    of_signals = (n for n in names if n.startswith(SIGNAL_PREFIX) and n.endswith(".txt"))
    signals = {
        name[len(SIGNAL_PREFIX) : -len(".txt")]: text
        for name in itertools.islice(of_signals, SIGNALS_LIMIT)
        if (text := _text(folder, name))
    }
    return RecordingContents(
        path=path,
        header=header,
        events=journal.read_events(files[EVENTS].records),
        samples=series.read_samples(files[SAMPLES]),
        seconds=series.read_summaries(files[SECONDS]),
        minutes=series.read_summaries(files[MINUTES]),
        progress=newest.newest_progress(files[PROGRESS].records),
        gpu_memory=newest.newest_gpu_memory(files[GPU_MEMORY].records),
        seen=_seen(folder),
        exit_status=_exit_status(folder),
        stderr_tail=stderr_end(folder),
        fault_text=_text(folder, FAULT),
        signal_texts=signals,
        end=json_object(folder.read(END, _TEXT_LIMIT_BYTES)),
        problems=problems,
    )


def recording_header(path: Path) -> dict[str, Any]:
    """Only the header of a recording; empty if it cannot be read."""
    try:
        return _header(PrivateFolder(path, make=False)) or {}
    except FolderUnusable:
        return {}


def _header(folder: PrivateFolder) -> dict[str, Any] | None:
    return json_object(folder.read(HEADER, _TEXT_LIMIT_BYTES))


def _seen(folder: PrivateFolder) -> dict[str, Any] | None:
    seen = json_object(folder.read(SEEN, RECORDS_LIMIT_BYTES))
    return seen if seen is not None and isinstance(seen.get("server"), dict) else None


def _exit_status(folder: PrivateFolder) -> int | None:
    status = (json_object(folder.read(EXIT, _TEXT_LIMIT_BYTES)) or {}).get("status")
    return status if type(status) is int and 0 <= status <= _HIGHEST_STATUS else None


def _records(folder: PrivateFolder, name: str, problems: list[str]) -> RecordFile:
    """The records of a file. If it is unreadable, adds the reason to `problems`; missing or empty is no problem."""
    content = folder.read(name, RECORDS_LIMIT_BYTES)
    if content:
        try:
            return read_records(content, f"The file {name}")
        except RecordUnreadable as bad:
            problems.append(str(bad))
    return RecordFile({}, [])


def _text(folder: PrivateFolder, name: str) -> str:
    return (folder.read(name, _TEXT_LIMIT_BYTES) or b"").decode("utf-8", "replace")
