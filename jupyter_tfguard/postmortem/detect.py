"""Which recordings belong to kernels that did not end orderly, and were not reported by anybody."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import RecordUnreadable
from ..record.alive import JudgedBy, Looker, Place, newest_change
from ..record.claims import Claimed, claim
from ..record.contents import RecordingContents, read_recording, recording_header
from ..record.folders import remove_folder
from ..record.identity import ProcessIdentity
from ..record.recording import remove_recording
from .orderly import ended_orderly

# A watcher needs about a tenth of a second for its own report; after this long it is not coming.
WATCHER_GRACE_SECONDS = 10.0
_ABANDONED_SECONDS = 86400.0

InHand = Callable[[ProcessIdentity], bool]


@dataclass(frozen=True)
class Orphan:
    """A dead kernel's recording, claimed by this process, and nobody else's to report.

    Attributes:
        identity: The kernel's process.
        contents: What it recorded.
        same_boot: The kernel ran on this boot of this machine.
        judged_by: How it is known that the kernel is dead.
        others: The same recording in other places: copies, claimed as well.
    """

    identity: ProcessIdentity
    contents: RecordingContents
    same_boot: bool
    judged_by: JudgedBy = JudgedBy.PROCESS
    others: tuple[Path, ...] = ()

    @property
    def parent_is_gone(self) -> bool:
        """True when the process that started the kernel no longer runs, or ran before this boot; False when unknown."""
        if self.judged_by is JudgedBy.SILENCE:
            return False
        if not self.same_boot:
            return True
        parent = self.contents.header.get("parent_pid")
        return (
            self.same_processes and isinstance(parent, int) and ProcessIdentity.of(parent) is None
        )

    @property
    def same_processes(self) -> bool:
        """True when process ids and groups in the recording are those of this process's own surroundings."""
        return Place.here().sees_processes_of(Place.of(self.contents.header))

    def remove(self) -> None:
        """Delete the claimed recording, once its bundle is written."""
        for path in (*self.others, self.contents.path):
            remove_recording(path)

    def give_back(self) -> None:
        """Put the recording back for a later attempt, when its bundle could not be written."""
        for path in (self.contents.path, *self.others):
            with contextlib.suppress(OSError):
                os.rename(path, path.with_name(self.identity.folder_name))


def nobodys(identity: ProcessIdentity) -> bool:
    """Of a process that watches no kernels: none is in its hands."""
    return False


def orphans(root: Path, copies: Path | None = None) -> list[Orphan]:
    """All of :func:`each_orphan`, claimed at once."""
    return list(each_orphan(root, copies))


def each_orphan(
    root: Path, copies: Path | None = None, in_hand: InHand = nobodys
) -> Iterator[Orphan]:
    """Claim every recording of a kernel that did not end orderly; remove those of an orderly end.

    One at a time, the newest first: hundreds that died while no server ran need no more memory than one.
    Recordings of living kernels are left alone, and so are those of a watcher that may still be at work.

    Args:
        root: Where the kernels of this machine record.
        copies: Where watchers, those of other machines too, copy recordings to; a copy speaks where the original is gone.
        in_hand: Whether this process watches, or watched, the kernel itself, and so tells of its end.
    """
    looker = Looker(root)
    if copies is None:
        for name, path in _recordings(root):
            yield from _look(path, name, looker, None, in_hand)
        return
    originals = {(name, _place(path)) for name, path in _recordings(root)}
    for name, path in _recordings(root):
        yield from _look(path, name, looker, copies, in_hand)
    looker = Looker(copies)
    for name, path in _recordings(copies):
        # An original that is there, living or just claimed, speaks for itself.
        if (name, _place(path)) not in originals:
            yield from _look(path, name, looker, None, in_hand)


def _recordings(root: Path) -> Iterator[tuple[str, Path]]:
    """(name, folder) of what lies there, whoever may have claimed it."""
    with contextlib.suppress(OSError):
        folders = os.listdir(root)
        for folder in sorted(folders, key=lambda n: newest_change(root / n), reverse=True):
            claimed = Claimed.from_folder_name(folder)
            name = claimed.original if claimed else folder
            if ProcessIdentity.from_folder_name(name) is not None:
                yield name, root / folder


def _look(
    path: Path, name: str, looker: Looker, copies: Path | None, in_hand: InHand
) -> Iterator[Orphan]:
    identity = ProcessIdentity.from_folder_name(name)
    assert identity is not None
    claimed = Claimed.from_folder_name(path.name)
    if claimed is not None and not claimed.is_abandoned(path, looker):
        return
    # Of the living, who may be many, no more than the header is read.
    verdict = looker.verdict(path, identity, recording_header(path))
    if verdict.alive:
        return
    # Process ids of other machines say nothing about ours.
    if looker.here.sees_processes_of(_place(path)) and in_hand(identity):
        return
    try:
        contents = read_recording(path)
    except RecordUnreadable:
        _remove_if_abandoned(path, looker)
        return
    if _left_to_watcher(contents, looker):
        return
    mine = claim(path)
    if mine is None:
        return
    copy = None
    if copies is not None and _place(copies / name) == Place.of(contents.header):
        copy = claim(copies / name)
    others = () if copy is None else (copy,)
    if ended_orderly(contents):
        for folder in (mine, *others):
            remove_recording(folder)
        return
    with contextlib.suppress(RecordUnreadable):
        same_boot = contents.header.get("boot_id") == looker.here.boot_id
        yield Orphan(identity, read_recording(mine), same_boot, verdict.by, others)


def _place(path: Path) -> Place:
    return Place.of(recording_header(path))


def _left_to_watcher(contents: RecordingContents, looker: Looker) -> bool:
    watcher = contents.header.get("watcher_pid")
    if not looker.here.sees_processes_of(Place.of(contents.header)):
        return False
    if not isinstance(watcher, int) or watcher == os.getpid():
        return False
    if ProcessIdentity.of(watcher) is None:
        return False
    return looker.silent_seconds(contents.path) < WATCHER_GRACE_SECONDS


def _remove_if_abandoned(path: Path, looker: Looker) -> None:
    """An unreadable recording has nothing to tell; it goes once its writer and a day are over."""
    if looker.silent_seconds(path) > _ABANDONED_SECONDS:
        remove_folder(path)
