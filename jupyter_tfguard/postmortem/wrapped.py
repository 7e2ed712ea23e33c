"""Kernels that are started through another program: a script that does not `exec`, ``conda run``, a container's starter.

The server knows and watches that program. Its exit code passes on how the kernel ended; its memory is not the kernel's. After
the end the kernel's own recording is found by the kernel's id.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..diagnosis.exit_status import passed_on_signal
from ..errors import RecordUnreadable
from ..record.alive import Looker, Place, newest_change
from ..record.claims import Claimed
from ..record.contents import recording_header
from ..record.facts import AROUND_THE_KERNEL, ServerFacts
from ..record.identity import ProcessIdentity
from ..watch.death import Death

_TOGETHER_SECONDS = 60.0
_LEFT_ALONE_SECONDS = 3.0
_TAKEN_DOWN_SECONDS = 20.0


def unwrapped(death: Death) -> Death:
    """The crash of the kernel itself, where the process that ended was a program around it. Reads files."""
    facts = death.facts
    if facts.kernel_alive or facts.exit is None or death.recording.is_dir():
        return death
    root = death.recording.parent
    found = max(recordings_inside(root, death.kernel_id, facts.died), default=None)
    if found is None or goes_on(found[1]):
        by_signal = facts.exit.code is not None and passed_on_signal(facts.exit.code) is not None
        return replace(death, facts=_of_kernel(facts)) if by_signal else death
    identity = found[1]
    recording = root / identity.folder_name
    return replace(death, identity=identity, recording=recording, facts=_of_kernel(facts))


def recordings_inside(
    root: Path, kernel_id: str, died: float
) -> Iterator[tuple[float, ProcessIdentity]]:
    """Recordings with this kernel's id that were written to until about the end of the program around it.

    Args:
        root: Folder of the recordings.
        kernel_id: Of the kernel.
        died: Unix seconds when that program ended.

    Yields:
        Unix seconds of the newest change, and the process that recorded.
    """
    here = Looker(root).here
    with contextlib.suppress(OSError):
        for path in root.iterdir():
            identity = ProcessIdentity.from_folder_name(path.name)
            if identity is None or Claimed.from_folder_name(path.name) is not None:
                continue
            changed = newest_change(path)
            if abs(changed - died) > _TOGETHER_SECONDS:
                continue
            with contextlib.suppress(RecordUnreadable):
                header = recording_header(path)
                if header.get("kernel_id") == kernel_id and here.sees_processes_of(
                    Place.of(header)
                ):
                    yield changed, identity


def recorders(
    root: Path, identity: ProcessIdentity, kernel_id: str, moment: float
) -> list[ProcessIdentity]:
    """The processes that may have recorded for a kernel: the watched one, or those started by it.

    Args:
        root: Folder of the recordings.
        identity: The watched process.
        kernel_id: Of the kernel.
        moment: Unix seconds when it still ran.
    """
    if (root / identity.folder_name).is_dir():
        return [identity]
    return [inside for _, inside in recordings_inside(root, kernel_id, moment)]


def goes_on(process: ProcessIdentity) -> bool:
    """True for a kernel that runs on without its starter; ipykernel ends itself within a second or two after that."""
    began = time.monotonic()
    while process.is_running():
        seconds = _TAKEN_DOWN_SECONDS if process.is_ending() else _LEFT_ALONE_SECONDS
        if time.monotonic() - began > seconds:
            return True
        time.sleep(0.05)
    return False


def _of_kernel(facts: ServerFacts) -> ServerFacts:
    """What the end of the program around a kernel says about the kernel."""
    ended = facts.exit
    assert ended is not None
    if ended.code is None:
        seen = f"seen was that of the program around the kernel, {ended.signal}"
        facts = replace(facts, exit=None, unavailable=facts.unavailable | {"exit": seen})
    else:
        facts = replace(facts, exit=replace(ended, how=AROUND_THE_KERNEL))
    return _without_process(facts)


def _without_process(facts: ServerFacts) -> ServerFacts:
    """Leave out what was sampled of that program: it says nothing about the kernel."""
    kept = [i for i, name in enumerate(facts.columns) if not name.startswith("process.")]
    columns = tuple(facts.columns[i] for i in kept)
    rows = tuple(tuple(r[i] for i in kept) for r in facts.rows)
    return replace(facts, columns=columns, rows=rows, ended_children=(), peak_bytes=None)
