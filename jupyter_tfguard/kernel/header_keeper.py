"""What changes in the recording's header while the kernel runs: versions of what was imported, its memory group, counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from ..collectors.cgroup import CgroupCollector
from ..record.recording import Recording
from .header import library_versions


class HeaderKeeper:
    """Writes the header of the recording that there is; nothing where there is none.

    Args:
        recording: The recording now.
    """

    def __init__(self, recording: Callable[[], Recording | None]) -> None:
        self._recording = recording
        self._known_versions: dict[str, str] = {}
        self._starter_pid = os.getppid()
        self._starter_is_gone = False

    def write(self, fields: dict[str, Any]) -> None:
        """Put fields into the header."""
        recording = self._recording()
        if recording is not None:
            recording.write_header(fields)

    def versions(self, just_imported: str | None = None) -> None:
        """Look for libraries that were imported since.

        Args:
            just_imported: A module whose import calls us.
        """
        found = library_versions(just_imported, known=self._known_versions)
        recording = self._recording()
        if found and recording is not None:
            self._known_versions |= found
            versions = {**recording.header["versions"], **self._known_versions}
            recording.write_header({"versions": versions})

    def version(self, name: str) -> str | None:
        """Of a library that was imported; None where it is not known."""
        return self._known_versions.get(name)

    def memory_group(self, cgroup: CgroupCollector | None) -> None:
        """Keep in the header which cgroup this kernel is in: after a death nothing else knows it."""
        recording = self._recording()
        if cgroup is None or recording is None:
            return
        own, binding = cgroup.groups[0], cgroup.binding
        group = {"path": own.path, "version": own.version, "limited_by": binding.path}
        if recording.header.get("memory_group") != group:
            recording.write_header({"memory_group": group})

    def starter(self) -> None:
        """Note once that the process which started this kernel has ended: a kernel that ended first did not end because of it."""
        if not self._starter_is_gone and os.getppid() != self._starter_pid:
            self._starter_is_gone = True
            self.write({"starter_gone": time.time()})
