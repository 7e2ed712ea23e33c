"""Kernels that are started through another program: a script that does not `exec`, ``conda run``, a container's starter.

The server knows and watches only that program. Its exit code passes on how the kernel ended, but its memory is not the
kernel's. After the end, the recording of the kernel is found by the kernel id.
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
from ..watch.crash.crash import Crash

# ipykernel ends itself within two seconds after its starter; freeing the memory of a large process takes longer.
_ENDS_SECONDS = 20.0


def only_started(crash: Crash, known: bool) -> bool:
    """True if a start command ended with 0 before the server heard from the kernel: it left the kernel in the background.

    A kernel that the guard records is not a start command.

    Args:
        crash: The end of a process.
        known: An earlier start of this kernel ended so: since then the kernel in the background may have answered.
    """
    facts = crash.facts
    return (
        not facts.kernel_alive
        and not facts.shutting_down
        and facts.exit is not None
        and facts.exit.code == 0
        and (known or facts.answered is False)
        and not crash.recording.is_dir()
    )


def unwrapped(crash: Crash) -> Crash:
    """The crash of the kernel itself, if the process that ended was the program that started it. Reads files."""
    facts = crash.facts
    if facts.kernel_alive or facts.exit is None or crash.recording.is_dir():
        return crash
    root = crash.recording.parent
    recorder = recorder_of(root, crash.identity, crash.kernel_id)
    if recorder == crash.identity or goes_on(recorder):
        by_signal = facts.exit.code is not None and passed_on_signal(facts.exit.code) is not None
        return replace(crash, facts=_of_kernel(facts)) if by_signal else crash
    recording = root / recorder.folder_name
    return replace(crash, identity=recorder, recording=recording, facts=_of_kernel(facts))


def recorder_of(root: Path, identity: ProcessIdentity, kernel_id: str) -> ProcessIdentity:
    """The process that writes, or wrote, the recording of a kernel: the watched process, or one that it started.

    Args:
        root: Folder of the recordings.
        identity: The watched process.
        kernel_id: Id of the kernel.
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
    """Wait until the process has ended; True for a kernel that is still running long after its starter ended."""
    ends = time.monotonic() + _ENDS_SECONDS
    while process.is_running():
        if time.monotonic() > ends:
            return True
        time.sleep(0.05)
    return False


def _of_kernel(facts: ServerFacts) -> ServerFacts:
    """What the end of the starting program shows about the kernel; samples of that program are left out."""
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
