"""Find recordings of kernels that did not end in an orderly way and were not reported yet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import RecordUnreadable
from ..memory.limits import binding_limit
from ..private_files import remove_folder
from ..record.alive import (
    JudgedBy,
    Place,
    claim,
    crash_known_by,
    give_back,
    is_claimed,
    newest_change,
    recording_name,
    silent_seconds,
)
from ..record.contents import RecordingContents, read_recording, recording_header
from ..record.events import QUIT, UNASKED, CellEnd, CellStart, ExitRequested
from ..record.identity import ProcessIdentity, boot_id
from ..record.late_stderr import wait_until_finished
from ..record.recording import remove_recording

# A watcher needs about a tenth of a second for its report; after this time, it will not report.
WATCHER_GRACE_SECONDS = 10.0
_ABANDONED_SECONDS = 86400.0
_NEAR_FRACTION = 0.8  # of a limit: above it, lack of memory may have ended an idle kernel

InHand = Callable[[ProcessIdentity], bool]


@dataclass(frozen=True)
class Orphan:
    """A dead kernel's recording. This process has claimed it, so no other process reports it.

    Attributes:
        identity: The kernel's process.
        contents: Contents of the recording.
        judged_by: How it is known that the kernel is dead.
        others: Copies of the recording in other folders, claimed as well.
    """

    identity: ProcessIdentity
    contents: RecordingContents
    judged_by: JudgedBy = JudgedBy.PROCESS
    others: tuple[Path, ...] = ()

    @property
    def parent_is_gone(self) -> bool:
        """True if the process that started the kernel no longer runs, or ran before this boot; False if unknown."""
        if self.judged_by is JudgedBy.SILENCE:
            return False
        if self.contents.header.get("boot_id") != boot_id():
            return True
        parent = self.contents.header.get("parent_pid")
        return (
            self.same_processes and isinstance(parent, int) and ProcessIdentity.of(parent) is None
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """The claimed folders: the recording and its copies."""
        return self.contents.path, *self.others

    @property
    def same_processes(self) -> bool:
        """True if process ids and cgroups in the recording are valid for this process too."""
        return Place.of(self.contents.header) == Place.here()

    def remove(self) -> None:
        """Delete the claimed recording, once its bundle is written."""
        for path in reversed(self.paths):
            remove_recording(path)

    def give_back(self) -> None:
        """Put the recording back for a later attempt, when its bundle could not be written."""
        for path in self.paths:
            give_back(path)


def unclaimed(identity: ProcessIdentity) -> bool:
    """Always False: the default for a process that watches no kernels."""
    return False


def each_orphan(
    root: Path, copies: Path | None = None, in_hand: InHand = unclaimed
) -> Iterator[Orphan]:
    """Claim every recording of a kernel that did not end in an orderly way; remove those of an orderly end.

    One at a time, the newest first. Recordings of running kernels are skipped, and so are those whose watcher may still
    report them.

    Args:
        root: Folder of the recordings of this machine.
        copies: Folder to which watchers, also on other machines, copy recordings; a copy counts if the original is gone.
        in_hand: Whether this process watches, or watched, the kernel itself, and so reports its end.
    """
    originals = [(path, _place(path)) for path in _recordings(root)]
    for path, place in originals:
        copy = None if copies is None else copies / recording_name(path)
        yield from _claimed(path, place, copy, in_hand)
    known = {(recording_name(path), place) for path, place in originals}
    for path in () if copies is None else _recordings(copies):
        place = _place(path)
        if (recording_name(path), place) not in known:
            yield from _claimed(path, place, None, in_hand)


def _recordings(root: Path) -> list[Path]:
    """Folders of recordings, including claimed ones, the newest first."""
    try:
        paths = [root / name for name in os.listdir(root)]
    except OSError:
        return []
    found = [path for path in paths if ProcessIdentity.from_folder_name(recording_name(path))]
    return sorted(found, key=newest_change, reverse=True)


def _place(path: Path) -> Place:
    return Place.of(recording_header(path))


def _claimed(path: Path, place: Place, copy: Path | None, in_hand: InHand) -> Iterator[Orphan]:
    identity = ProcessIdentity.from_folder_name(recording_name(path))
    assert identity is not None
    if is_claimed(path):
        return
    # There may be many running kernels, so only the header of their recordings is read.
    judged_by = crash_known_by(path, identity, recording_header(path))
    if judged_by is None or (place == Place.here() and in_hand(identity)):
        return
    wait_until_finished(path)
    try:
        contents = read_recording(path)
    except RecordUnreadable:
        if silent_seconds(path) > _ABANDONED_SECONDS:
            remove_folder(path)
        return
    if contents.seen is None and _left_to_watcher(contents):
        return
    mine = claim(path)
    if mine is None:
        return
    copied = claim(copy) if copy is not None and _place(copy) == place else None
    others = () if copied is None else (copied,)
    if contents.seen is None and _ended_orderly(contents):
        for folder in (mine, *others):
            remove_recording(folder)
        return
    with contextlib.suppress(RecordUnreadable):
        yield Orphan(identity, read_recording(mine), judged_by, others)


def _left_to_watcher(contents: RecordingContents) -> bool:
    watcher = contents.header.get("watcher_pid")
    return (
        isinstance(watcher, int)
        and watcher != os.getpid()
        and Place.of(contents.header) == Place.here()
        and ProcessIdentity.of(watcher) is not None
        and silent_seconds(contents.path) < WATCHER_GRACE_SECONDS
    )


def _ended_orderly(contents: RecordingContents) -> bool:
    """True if the end was requested, or the kernel was idle and nothing suggests a crash.

    Clients that run notebooks without a server kill an idle kernel when they are done with it (VS Code, nbclient's
    ``shutdown_kernel="immediate"``). A manager kills a kernel that does not end in time after a request. ``quit()`` in a
    cell is not an orderly end.
    """
    asked = [event.how for event in contents.journal if isinstance(event, ExitRequested)]
    if contents.end is not None:
        return contents.end.get("reason") not in (QUIT, UNASKED)
    if asked:
        return asked[-1] != QUIT
    return not (
        _is_watched(contents)
        or _cell_runs(contents)
        or contents.fault_text
        or _is_near_limit(contents)
    )


def _is_watched(contents: RecordingContents) -> bool:
    """True while the server that started the kernel runs. It would have removed the recording after an orderly end."""
    watcher = contents.header.get("watcher_pid")
    return isinstance(watcher, int) and ProcessIdentity.of(watcher) is not None


def _cell_runs(contents: RecordingContents) -> bool:
    """True if a cell is running, or the recording has no events about cells, for example because it is damaged."""
    cells = [event for event in contents.journal if isinstance(event, (CellStart, CellEnd))]
    return not cells or isinstance(cells[-1], CellStart)


def _is_near_limit(contents: RecordingContents) -> bool:
    """True if memory use is near a limit, or not known."""
    values = contents.samples[-1].values if contents.samples else {}
    limit = binding_limit(values)
    used = None if limit is None else limit.used(values)
    return limit is None or used is None or used > _NEAR_FRACTION * limit.size_bytes
