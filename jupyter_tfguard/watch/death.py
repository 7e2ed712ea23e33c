"""A death as the watcher hands it on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..record.facts import ServerFacts, SystemLog
from ..record.identity import ProcessIdentity


@dataclass(frozen=True)
class Death:
    """One death of a kernel, or of a child of a living one (``facts.kernel_alive``).

    Attributes:
        identity: The process that ended.
        kernel_id, kernel_name, notebook_path: As the host knows them; None = unknown.
        recording: Folder of the recording of `identity`, whether it exists or not.
        facts: What the watcher saw.
        system_log: Lines of the system's log from before the death on.
    """

    identity: ProcessIdentity
    kernel_id: str
    kernel_name: str | None
    notebook_path: str | None
    recording: Path
    facts: ServerFacts
    system_log: SystemLog
