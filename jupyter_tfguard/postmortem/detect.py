"""Which recordings belong to kernels that ended without a mark, and were not reported by anybody."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import RecordUnreadable
from ..record.identity import ProcessIdentity, boot_id
from ..record.recording import RecordingContents, claim, read_recording, unclaimed_name

# A watcher needs about a tenth of a second for its own report; after this long it is not coming.
WATCHER_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Orphan:
    """A dead kernel's recording, claimed by this process, and nobody else's to report."""

    identity: ProcessIdentity
    contents: RecordingContents
    same_boot: bool

    @property
    def parent_is_gone(self) -> bool:
        """True when the process that started the kernel no longer runs, or ran before this boot."""
        parent = self.contents.header.get("parent_pid")
        if not isinstance(parent, int) or not self.same_boot:
            return not self.same_boot
        return ProcessIdentity.of(parent) is None

    def remove(self) -> None:
        """Delete the claimed recording, once its bundle is written."""
        shutil.rmtree(self.contents.path, ignore_errors=True)

    def give_back(self) -> None:
        """Put the recording back for a later attempt, when its bundle could not be written."""
        path = self.contents.path
        with contextlib.suppress(OSError):
            os.rename(path, path.with_name(self.identity.folder_name))


def orphans(root: Path) -> list[Orphan]:
    """Claim every recording of a kernel that ended without a mark; remove those of an orderly end.

    Recordings of living kernels are left alone, and so are those of a watcher that may still be at work.
    """
    found = []
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    for name in names:
        path = root / name
        identity = ProcessIdentity.from_folder_name(unclaimed_name(name) or name)
        if identity is None:
            continue
        try:
            contents = read_recording(path)
        except RecordUnreadable:
            _remove_if_abandoned(path, identity)
            continue
        same_boot = contents.header.get("boot_id") == boot_id()
        if (same_boot and identity.is_running()) or _left_to_watcher(contents, same_boot):
            continue
        claimed = claim(path)
        if claimed is None:
            continue
        if contents.end is not None and contents.end.get("reason") != "quit":
            shutil.rmtree(claimed, ignore_errors=True)
            continue
        with contextlib.suppress(RecordUnreadable):
            found.append(Orphan(identity, read_recording(claimed), same_boot))
    return found


def _left_to_watcher(contents: RecordingContents, same_boot: bool) -> bool:
    watcher = contents.header.get("watcher_pid")
    if not same_boot or not isinstance(watcher, int) or watcher == os.getpid():
        return False
    if ProcessIdentity.of(watcher) is None:
        return False
    return _newest_change(contents.path) > time.time() - WATCHER_GRACE_SECONDS


def _newest_change(path: Path) -> float:
    newest = 0.0
    with contextlib.suppress(OSError):
        for item in os.scandir(path):
            newest = max(newest, item.stat(follow_symlinks=False).st_mtime)
    return newest


def _remove_if_abandoned(path: Path, identity: ProcessIdentity) -> None:
    """An unreadable recording has nothing to tell; it goes once its process and a day are over."""
    if not identity.is_running() and _newest_change(path) < time.time() - 86400:
        shutil.rmtree(path, ignore_errors=True)
