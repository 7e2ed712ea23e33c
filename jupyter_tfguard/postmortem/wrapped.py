"""Kernels that are started through another program: a script that does not `exec`, ``conda run``, a container's starter.

The server knows and watches that program. Its exit code passes on how the kernel ended; its memory is not the kernel's. After
the end the kernel's own recording is found by the kernel's id.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from ..diagnosis.exit_status import passed_on_signal
from ..record.alive import Place, newest_change
from ..record.contents import recording_header
from ..record.facts import AROUND_THE_KERNEL, ServerFacts
from ..record.identity import ProcessIdentity
from ..watch.death import Death

# ipykernel ends itself within two seconds after its starter; the memory of a large process takes longer to be freed.
_ENDS_SECONDS = 20.0


def unwrapped(death: Death) -> Death:
    """The crash of the kernel itself, where the process that ended was a program around it. Reads files."""
    facts = death.facts
    if facts.kernel_alive or facts.exit is None or death.recording.is_dir():
        return death
    root = death.recording.parent
    recorder = recorder_of(root, death.identity, death.kernel_id)
    if recorder == death.identity or goes_on(recorder):
        by_signal = facts.exit.code is not None and passed_on_signal(facts.exit.code) is not None
        return replace(death, facts=_of_kernel(facts)) if by_signal else death
    recording = root / recorder.folder_name
    return replace(death, identity=recorder, recording=recording, facts=_of_kernel(facts))


def recorder_of(root: Path, identity: ProcessIdentity, kernel_id: str) -> ProcessIdentity:
    """The process that records, or recorded, for a kernel: the watched one, or the one that it started.

    Args:
        root: Folder of the recordings.
        identity: The watched process.
        kernel_id: Of the kernel.
    """
    if (root / identity.folder_name).is_dir() or not root.is_dir():
        return identity
    for path in sorted(root.iterdir(), key=newest_change, reverse=True):
        inside = ProcessIdentity.from_folder_name(path.name)
        header = recording_header(path) if inside is not None else {}
        if header.get("kernel_id") == kernel_id and Place.of(header) == Place.here():
            assert inside is not None
            return inside
    return identity


def goes_on(process: ProcessIdentity) -> bool:
    """Wait until the process has ended; True for a kernel that still runs long after its starter."""
    ends = time.monotonic() + _ENDS_SECONDS
    while process.is_running():
        if time.monotonic() > ends:
            return True
        time.sleep(0.05)
    return False


def _of_kernel(facts: ServerFacts) -> ServerFacts:
    """What the end of the program around a kernel says about the kernel; what was sampled of that program is left out."""
    ended = facts.exit
    assert ended is not None
    if ended.code is None:
        seen = f"not known; only that of the program that had started the kernel was seen, {ended.signal}"
        facts = replace(facts, exit=None, unavailable=facts.unavailable | {"exit": seen})
    else:
        facts = replace(facts, exit=replace(ended, how=AROUND_THE_KERNEL))
    kept = [i for i, name in enumerate(facts.columns) if not name.startswith("process.")]
    columns = tuple(facts.columns[i] for i in kept)
    rows = tuple(tuple(r[i] for i in kept) for r in facts.rows)
    return replace(facts, columns=columns, rows=rows, ended_children=(), peak_bytes=None)
