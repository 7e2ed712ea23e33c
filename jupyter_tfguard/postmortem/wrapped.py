"""Kernels that are started through another program: a script that does not `exec`, ``conda run``, a container's starter.

The process that the server knows is then that program. Its exit code passes on how the kernel ended; its memory is not the
kernel's. The kernel itself is found, and looked at, through its recording (:meth:`~..watch.process_witness.ProcessWitness.turn_to`).
"""

from __future__ import annotations

import contextlib
import time
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
    """The same death told of the kernel itself, where the process that ended was a program around it. Reads files."""
    ended = death.facts.exit
    if death.facts.kernel_alive:  # a child of it died
        return replace(death, identity=death.process)
    if death.process != death.identity:
        return _of_process(death)
    if ended is None or ended.code is None or death.recording.is_dir():
        return death
    inside = _recording_inside(death)
    if inside is None:
        return death if passed_on_signal(ended.code) is None else _around(death)
    identity = ProcessIdentity.from_folder_name(inside.name)
    assert identity is not None
    return replace(_around(death), identity=identity, process=identity, recording=inside)


def _of_process(death: Death) -> Death:
    """Of a kernel that was known, and looked at, beside the program around it."""
    if _goes_on(death.process):
        root = death.recording.parent
        alone = replace(death, process=death.identity, recording=root / death.identity.folder_name)
        return replace(alone, facts=_without_process(death.facts))
    facts, ended = death.facts, death.facts.exit
    if ended is not None and ended.code is not None:
        facts = _passed_on(facts)
    elif ended is not None:
        seen = f"seen was that of the program around the kernel, {ended.signal}"
        facts = replace(facts, exit=None, unavailable=facts.unavailable | {"exit": seen})
    return replace(death, identity=death.process, facts=facts)


def _goes_on(process: ProcessIdentity) -> bool:
    """True of a kernel that lives without its starter; ipykernel's own ends within a second or two of that."""
    began = time.monotonic()
    while process.is_running():
        seconds = _TAKEN_DOWN_SECONDS if process.is_ending() else _LEFT_ALONE_SECONDS
        if time.monotonic() - began > seconds:
            return True
        time.sleep(0.05)
    return False


def _around(death: Death) -> Death:
    return replace(death, facts=_without_process(_passed_on(death.facts)))


def _passed_on(facts: ServerFacts) -> ServerFacts:
    assert facts.exit is not None
    how = replace(facts.exit, how=AROUND_THE_KERNEL)
    return replace(facts, exit=how, starter_peak_bytes=None)


def _without_process(facts: ServerFacts) -> ServerFacts:
    """What was sampled of that program is nothing of the kernel's."""
    kept = [i for i, name in enumerate(facts.columns) if not name.startswith("process.")]
    columns = tuple(facts.columns[i] for i in kept)
    rows = tuple(tuple(r[i] for i in kept) for r in facts.rows)
    return replace(
        facts, columns=columns, rows=rows, ended_children=(), peak_bytes=None, peak_source=None
    )


def _recording_inside(death: Death) -> Path | None:
    """The newest recording with this kernel's id, of a process that ended at that time too."""
    root = death.recording.parent
    looker = Looker(root)
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for path in root.iterdir():
            identity = ProcessIdentity.from_folder_name(path.name)
            if identity is None or Claimed.from_folder_name(path.name) is not None:
                continue
            changed = newest_change(path)
            if abs(changed - death.facts.died) > _TOGETHER_SECONDS:
                continue
            with contextlib.suppress(RecordUnreadable):
                header = recording_header(path)
                ours = header.get("kernel_id") == death.kernel_id
                near = looker.here.sees_processes_of(Place.of(header))
                if ours and near and not looker.verdict(path, identity, header).alive:
                    found.append((changed, path))
    return max(found)[1] if found else None
