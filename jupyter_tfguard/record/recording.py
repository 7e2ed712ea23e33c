"""The recording: one folder per running kernel process, named by process id and start time.

=====================  =======================================================================================
``header.json``        who this is: see :class:`Recording`
``samples.ring``       samples the kernel took of itself (ring.py)
``journal.N.jsonl``    events (journal.py)
``progress.slot``      progress of the running fit (slot.py)
``stderr.N.txt``       the last native words; the highest N is the newest (spool.py)
``fault.txt``          faulthandler's text of a fatal signal
``signal-NAME.txt``    Python stack at a terminating signal, for instance ``signal-SIGTERM.txt``
``end.json``           present when the kernel ended in an orderly way
=====================  =======================================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import FolderUnusable, RecordTooNew, RecordUnreadable
from ..metrics import Metric, Sample
from ..shield import note_problem
from .folders import PrivateFolder
from .identity import ProcessIdentity, boot_id
from .journal import FILE_LIMIT_BYTES, JournalWriter, read_journal
from .journal import NAMES as JOURNAL_NAMES
from .ring import HEADER_BYTES, MAXIMUM_CAPACITY, RingWriter, read_ring
from .slot import SLOT_BYTES, SlotWriter, read_slot

FORMAT = (1, 0)
HEADER = "header.json"
SAMPLES = "samples.ring"
PROGRESS = "progress.slot"
FAULT = "fault.txt"
END = "end.json"
STDERR_PREFIX = "stderr."
SIGNAL_PREFIX = "signal-"
RING_CAPACITY = 1200
STDERR_LIMIT_BYTES = 64 * 1024
_TEXT_LIMIT_BYTES = 64 * 1024
_RING_LIMIT_BYTES = HEADER_BYTES + MAXIMUM_CAPACITY * 512
_CLAIM = "claimed-"


class Recording:
    """The writing side, in the kernel. A part that cannot be made is left out and noted; the others go on.

    Args:
        root: Folder of all recordings.
        identity: This process.
        header: What is known at the start: ``kernel_id``, ``notebook_path``, ``parent_pid``, ``versions``, ...

    Raises:
        FolderUnusable: The folder itself cannot be made.
    """

    def __init__(
        self,
        root: Path,
        identity: ProcessIdentity,
        header: dict[str, Any],
        metrics: Sequence[Metric],
    ) -> None:
        with PrivateFolder(root):
            pass  # makes the root, or says why it cannot be used
        self.folder = PrivateFolder(root / identity.folder_name)
        self.header: dict[str, Any] = {
            "format": list(FORMAT),
            "pid": identity.pid,
            "start_time": identity.start_time,
            "boot_id": boot_id(),
            "started": time.time(),
        } | header
        self.write_header({})
        self.journal: JournalWriter | None = None
        self.ring: RingWriter | None = None
        self.progress: SlotWriter | None = None
        with self._part("journal"):
            self.journal = JournalWriter(lambda name: self.folder.create(name, append=True))
        with self._part("ring of samples"):
            self.ring = RingWriter(self.folder.create(SAMPLES), metrics, RING_CAPACITY)
        with self._part("progress"):
            self.progress = SlotWriter(self.folder.create(PROGRESS))

    @contextlib.contextmanager
    def _part(self, name: str) -> Any:
        try:
            yield
        except (OSError, FolderUnusable) as bad:
            note_problem(f"recording: {name}", bad)

    def write_header(self, more: dict[str, Any]) -> None:
        """Add to the header. A full disk is noted, not raised."""
        self.header |= more
        with self._part("header"):
            self.folder.write_whole(HEADER, json.dumps(self.header, default=str).encode())

    def event(self, kind: str, **fields: Any) -> None:
        """Append an event; when the journal fails, it is given up and noted."""
        journal = self.journal
        if journal is None:
            return
        try:
            journal.write(kind, **fields)
        except OSError as bad:
            self.journal = None
            note_problem("recording: journal", bad)

    def sample(self, sample: Sample) -> None:
        """Write a sample; when the ring fails, it is given up and noted."""
        ring = self.ring
        if ring is None:
            return
        try:
            ring.write(sample)
        except OSError as bad:
            self.ring = None
            note_problem("recording: ring of samples", bad)

    def set_progress(self, value: dict[str, Any]) -> None:
        """Write the progress of a fit; when the file fails, it is given up and noted."""
        progress = self.progress
        if progress is None:
            return
        try:
            progress.write(value)
        except (OSError, ValueError) as bad:
            self.progress = None
            note_problem("recording: progress", bad)

    def end(self, reason: str) -> None:
        """Leave the mark of an orderly end."""
        with self._part("end mark"):
            mark = {"reason": reason, "time": time.time()}
            self.folder.write_whole(END, json.dumps(mark).encode())

    def close(self) -> None:
        """Give all descriptors back; the files stay."""
        for part in (self.journal, self.ring, self.progress):
            if part is not None:
                with contextlib.suppress(OSError):
                    part.close()
        self.journal = self.ring = self.progress = None
        self.folder.close()

    def remove(self) -> None:
        """Close, and delete the folder."""
        self.close()
        shutil.rmtree(self.folder.path, ignore_errors=True)


@dataclass(frozen=True)
class RecordingContents:
    """A recording read back. Everything in it is what the kernel claimed; what is damaged or absent is empty."""

    path: Path
    header: dict[str, Any]
    events: list[dict[str, Any]]
    samples: list[Sample]
    progress: dict[str, Any] | None
    stderr_tail: str
    fault_text: str
    signal_texts: dict[str, str]
    end: dict[str, Any] | None
    problems: list[str] = field(default_factory=list)


def read_recording(path: Path) -> RecordingContents:
    """Read what is intact of a recording, live or dead.

    Raises:
        RecordUnreadable: There is no such folder, or its header cannot be read.
        RecordTooNew: A newer major format.
    """
    if not path.is_dir():
        raise RecordUnreadable(f"There is no recording at {path}.")
    try:
        folder = PrivateFolder(path)
    except FolderUnusable as bad:
        raise RecordUnreadable(str(bad)) from bad
    with folder:
        header = _json_object(folder.read(HEADER, _TEXT_LIMIT_BYTES))
        if header is None:
            raise RecordUnreadable(
                f"The header of the recording {path.name} is missing or damaged."
            )
        major = _major(header)
        if major > FORMAT[0]:
            raise RecordTooNew(f"The recording {path.name}", major, FORMAT[0])
        problems = []
        samples: list[Sample] = []
        try:
            samples = read_ring(folder.read(SAMPLES, _RING_LIMIT_BYTES) or b"")
        except RecordUnreadable as bad:
            problems.append(str(bad))
        journals = [folder.read(name, 2 * FILE_LIMIT_BYTES) or b"" for name in JOURNAL_NAMES]
        names = folder.names()
        signals = {
            name[len(SIGNAL_PREFIX) : -len(".txt")]: text
            for name in names
            if name.startswith(SIGNAL_PREFIX)
            and name.endswith(".txt")
            and (text := _text(folder, name))
        }
        return RecordingContents(
            path=path,
            header=header,
            events=read_journal(journals),
            samples=samples,
            progress=read_slot(folder.read(PROGRESS, 2 * SLOT_BYTES) or b""),
            stderr_tail=_stderr_tail(folder, names),
            fault_text=_text(folder, FAULT),
            signal_texts=signals,
            end=_json_object(folder.read(END, _TEXT_LIMIT_BYTES)),
            problems=problems,
        )


def _major(header: dict[str, Any]) -> int:
    try:
        return int(header["format"][0])
    except (KeyError, TypeError, ValueError, IndexError) as bad:
        raise RecordUnreadable("The header of the recording names no format.") from bad


def _json_object(content: bytes | None) -> dict[str, Any] | None:
    try:
        value = json.loads(content or b"")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(folder: PrivateFolder, name: str) -> str:
    return (folder.read(name, _TEXT_LIMIT_BYTES) or b"").decode("utf-8", "replace")


def _stderr_tail(folder: PrivateFolder, names: list[str]) -> str:
    numbers = sorted(
        int(middle)
        for name in names
        if name.startswith(STDERR_PREFIX)
        and name.endswith(".txt")
        and (middle := name[len(STDERR_PREFIX) : -len(".txt")]).isascii()
        and middle.isdigit()
    )
    newest = (
        folder.read(f"{STDERR_PREFIX}{n}.txt", STDERR_LIMIT_BYTES) or b"" for n in numbers[-4:]
    )
    return b"".join(newest)[-STDERR_LIMIT_BYTES:].decode("utf-8", "replace")


def claim(path: Path) -> Path | None:
    """Take a dead kernel's recording for this process alone, so that one death makes one report.

    Returns:
        The folder's new path; None when somebody else was faster.
    """
    target = path.with_name(f"{_CLAIM}{os.getpid()}-{path.name}")
    try:
        os.rename(path, target)
    except OSError:
        return None
    return target


def unclaimed_name(name: str) -> str | None:
    """The original name of a folder claimed by a process that has since died; None for any other name."""
    if not name.startswith(_CLAIM):
        return None
    claimer, _, original = name[len(_CLAIM) :].partition("-")
    if not claimer.isdigit() or ProcessIdentity.of(int(claimer)) is not None:
        return None
    return original
