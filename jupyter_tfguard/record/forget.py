"""Removes what is kept, because its owner asks for it. What a living kernel is writing stays.

Only what tfguard names as its own is touched: somebody may keep other things in the same folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import BundleNotFound, FolderUnusable
from .alive import Looker
from .bundle import BundleStore
from .claims import Claimed
from .contents import recording_header
from .folders import PrivateFolder
from .identity import ProcessIdentity
from .retention import sweep_leftovers


@dataclass(frozen=True)
class Forgotten:
    """What was removed, and what was not.

    Attributes:
        removed: Ids of reports, or names of recordings.
        living: Recordings of kernels that run, left alone.
        stayed: What could not be removed, each with the reason.
    """

    removed: tuple[str, ...] = ()
    living: tuple[str, ...] = ()
    stayed: tuple[str, ...] = ()


def forget_reports(store: BundleStore, ids: Iterable[str]) -> Forgotten:
    """Remove these reports. One that is gone since it was listed counts as removed."""
    removed, stayed = [], []
    for report_id in ids:
        try:
            with contextlib.suppress(BundleNotFound):
                store.remove(report_id)
            removed.append(report_id)
        except (OSError, FolderUnusable) as bad:
            stayed.append(f"{report_id}: {_reason(bad)}")
    return Forgotten(tuple(removed), (), tuple(stayed))


def forget_leftovers(store: BundleStore) -> Forgotten:
    """Remove what killed writers left half done among the reports, then the folder itself if it is empty."""
    sweep_leftovers(store, patience_seconds=0.0)
    stayed = _remove(store.root, _half_written(store.root))
    with contextlib.suppress(OSError):
        store.root.rmdir()
    return Forgotten(stayed=tuple(stayed))


def forget_recordings(root: Path) -> Forgotten:
    """Remove every recording of a kernel that does not run any more."""
    looker = Looker(root)
    living: list[str] = []
    dead: list[str] = []
    for name in _names(root):
        claimed = Claimed.from_folder_name(name)
        identity = ProcessIdentity.from_folder_name(claimed.original if claimed else name)
        if identity is None:
            continue
        path = root / name
        alive = looker.verdict(path, identity, recording_header(path)).alive
        (living if alive else dead).append(name)
    stayed = _remove(root, dead)
    _remove(root, _half_written(root))
    failed = {text.partition(":")[0] for text in stayed}
    removed = tuple(name for name in dead if name not in failed)
    return Forgotten(removed, tuple(living), tuple(stayed))


def _names(root: Path) -> list[str]:
    try:
        return sorted(os.listdir(root))
    except OSError:
        return []


def _half_written(root: Path) -> list[str]:
    """Files whose writer was killed before they got their name."""
    hidden = (name for name in _names(root) if name.startswith("."))
    return [name for name in hidden if not (root / name).is_dir()]


def _remove(root: Path, names: Iterable[str]) -> list[str]:
    """Delete these; returns what stays, each with the reason."""
    stayed = []
    try:
        folder = PrivateFolder(root, make=False)
    except FolderUnusable as bad:
        return [f"{name}: {bad}" for name in names]
    with folder:
        for name in names:
            try:
                with contextlib.suppress(FileNotFoundError):
                    folder.remove_folder(name)
            except OSError as bad:
                stayed.append(f"{name}: {_reason(bad)}")
    return stayed


def _reason(bad: Exception) -> str:
    return (bad.strerror or str(bad)) if isinstance(bad, OSError) else str(bad)
