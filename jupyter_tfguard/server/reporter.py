"""From a death to a kept report, a line in the server's log, and an event for the page."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..config import TfGuard
from ..places import copies_folder
from ..postmortem.capture import capture
from ..postmortem.detect import InHand, nobodys
from ..record.alive import FRESH_SECONDS
from ..record.bundle import BundleStore
from ..record.claims import claim
from ..record.identity import ProcessIdentity
from ..record.recording import remove_recording
from ..redact import redact
from ..report.publish import Publisher, report_orphans
from ..shield import note_problem
from ..watch.death import Death
from .wrapped import unwrapped

EVENT_SCHEMA = "https://schema.jupyter-tfguard.org/kernel_death/v1"
EVENT_SCHEMA_FILE = Path(__file__).with_name("events") / "kernel_death.yaml"

# Deaths whose reports could not be written, to be tried again.
_UNWRITTEN_LIMIT = 20
# What is looked through for secrets before it is cut: half a key has no form any more.
_PLAIN_LIMIT = 5000

Entry = dict[str, Any]


class Reporter:
    """Makes the reports. Nothing in it raises; a failure is noted, and logged once in a sentence.

    Args:
        recordings: Folder of the kernels' recordings.
        store: Where reports are kept.
        settings: What to keep of them.
        log: The server's.
        on_report: Called with the report's line in the list, in the thread that made it; for each death once.
        in_hand: Whether this server watches a kernel, or watched it a moment ago: its death comes to :meth:`report`.
    """

    def __init__(
        self,
        recordings: Path,
        store: BundleStore,
        settings: TfGuard,
        log: logging.Logger,
        on_report: Callable[[Entry], None],
        *,
        in_hand: InHand = nobodys,
    ) -> None:
        self._recordings = recordings
        self._store = store
        self._settings = settings
        self._log = log
        self._on_report = on_report
        self._in_hand = in_hand
        self._publisher = Publisher(store, settings)
        self._unwritten: deque[tuple[Death, Path | None, Path | None]] = deque(
            maxlen=_UNWRITTEN_LIMIT
        )

    def report(self, death: Death) -> None:
        """Capture, diagnose, save and announce one crash. Reads and writes files."""
        death = unwrapped(death)
        alive = death.facts.kernel_alive
        # Claimed, so that nobody else reports this death; a living kernel's recording stays where it is.
        claimed = None if alive else claim(death.recording)
        recording = claimed or (death.recording if alive and death.recording.is_dir() else None)
        bad = self._try(death, claimed, recording)
        if bad is not None:
            self._failed(death, bad)

    def _try(self, death: Death, claimed: Path | None, recording: Path | None) -> Exception | None:
        """What went wrong; the death is then kept for the next time."""
        try:
            entry = self._publisher.publish(_captured(death, recording))
        except (
            Exception
        ) as bad:  # a full disk, a folder of somebody else's, an error of ours: the server goes on
            self._unwritten.append((death, claimed, recording))
            return bad
        if claimed is not None:
            remove_recording(claimed)
        self._tell(entry)
        return None

    def _failed(self, death: Death, bad: Exception) -> None:
        fix = "Free some space, or set TFGUARD_DIR to a folder of your own on a disk with space."
        note_problem("report of a dead kernel", bad, fix=fix)
        self._log.warning(
            "tfguard: kernel %s died (%s), and its report could not be written: %s %s It is tried again every %.0f min.",
            plain(death.kernel_id),
            plain(str(death.facts.exit)),
            plain(f"{type(bad).__name__}: {bad}"),
            fix,
            FRESH_SECONDS / 60,
        )

    def _tell(self, entry: Entry) -> None:
        self._log.warning(
            "tfguard: kernel %s (pid %s) %s: %s, %s. Report %s",
            plain(entry.get("kernel_id")),
            plain(entry.get("pid")),
            "lost a child process" if entry.get("kernel_alive") else "died",
            plain(entry.get("cause")),
            plain(entry.get("confidence")),
            plain(entry.get("id")),
        )
        self._on_report(entry)

    def report_orphans(self) -> None:
        """Report kernels that died while no server watched (with their server, or outside of one), and those whose
        reports could not be written before.
        """
        for _ in range(len(self._unwritten)):
            self._try(*self._unwritten.popleft())
        try:
            made = report_orphans(
                self._recordings,
                self._store,
                self._settings,
                copies=copies_folder(),
                publisher=self._publisher,
                in_hand=self._in_hand,
            )
        except Exception as bad:
            note_problem("reports of kernels that died unwatched", bad)
            return
        for entry in made:
            self._tell(entry)

    def forget(self, identity: ProcessIdentity) -> None:
        """Remove the recording of a kernel that ended because it was asked to."""
        claimed = claim(self._recordings / identity.folder_name)
        if claimed is not None:
            remove_recording(claimed)


def _captured(death: Death, recording: Path | None) -> dict[str, Any]:
    return capture(
        identity=death.identity,
        kernel_id=death.kernel_id,
        kernel_name=death.kernel_name,
        notebook_path=death.notebook_path,
        recording=recording,
        server=death.facts,
        system_log=death.system_log,
    )


def event_data(entry: Entry) -> dict[str, Any]:
    """What the event tells: no source, no path, no title, because operators log events."""
    return {
        "id": str(entry["id"]),
        "kernel_id": str(entry.get("kernel_id") or ""),
        "cause": str(entry["cause"]),
        "confidence": str(entry["confidence"]),
        "kernel_alive": bool(entry.get("kernel_alive")),
    }


def plain(value: object) -> str:
    """Text for one line of a log: no secrets, control characters escaped, at most 300 characters."""
    text = redact(str(value)[:_PLAIN_LIMIT])
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)[:300]
