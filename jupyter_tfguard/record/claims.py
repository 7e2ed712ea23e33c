"""Taking a dead kernel's recording for one process alone, so that one death makes one report.

A claimed recording is renamed to ``claimed-<pid>.<start time>.<place>-<name>``, which tells everybody who claimed it and
where, and so whether the claimer is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .alive import FRESH_SECONDS, Looker, Place
from .identity import ProcessIdentity

_CLAIMED = re.compile(
    r"claimed-(\d{1,10})\.(\d{1,20})\.([0-9a-f]{8})-(\d{1,10}-\d{1,20})", re.ASCII
)


def claim(path: Path) -> Path | None:
    """Take a dead kernel's recording for this process alone, also from a claimer that has died.

    Returns:
        The folder's new path; None when somebody else was faster.
    """
    before = Claimed.from_folder_name(path.name)
    name = path.name if before is None else before.original
    me = ProcessIdentity.of(os.getpid())
    start = 0 if me is None else me.start_time
    target = path.with_name(f"claimed-{os.getpid()}.{start}.{Place.here().key}-{name}")
    try:
        os.rename(path, target)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(target)  # from here on the claim's age counts, where the claimer cannot be seen
    return target


@dataclass(frozen=True)
class Claimed:
    """A claimed recording, by the name of its folder."""

    claimer: ProcessIdentity
    place_key: str
    original: str

    @classmethod
    def from_folder_name(cls, name: str) -> Claimed | None:
        """The claim that a folder's name tells of; None for any other name."""
        found = _CLAIMED.fullmatch(name)
        if found is None:
            return None
        return cls(ProcessIdentity(int(found[1]), int(found[2])), found[3], found[4])

    def is_abandoned(self, path: Path, looker: Looker) -> bool:
        """True when whoever claimed the recording at `path` has died, or has been silent too long to come back."""
        if self.place_key == looker.here.key:
            return not self.claimer.is_running()
        return looker.silent_seconds(path) >= FRESH_SECONDS
