"""Runs the process that reads the GPUs before a scenario, and reads its lines."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.rigs.waiting import DEADLINE_SECONDS

from .library import environ
from .scenario import Scenario

TICK_SECONDS = 0.05
Line = dict[str, Any]


class Reader:
    """The process and its lines.

    Args:
        library: Folder of the stand-in, as :func:`~.library.build` gives it.
        path: Where the scenario is written.
    """

    def __init__(
        self, library: Path, path: Path, scenario: Scenario, seconds: float = TICK_SECONDS
    ) -> None:
        self.scenario = scenario
        self._path = path
        self.save()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_tfguard.collectors.gpu", str(seconds)],
            env=os.environ | environ(library, path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[Line | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def save(self) -> None:
        """Let the process see what has changed in the scenario."""
        self.scenario.save(self._path)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def line(self, seconds: float = DEADLINE_SECONDS) -> Line:
        """The next line.

        Raises:
            EOFError: There is no other one.
            queue.Empty: None came in time.
        """
        found = self._lines.get(timeout=seconds)
        if found is None:
            raise EOFError(f"the process ended with {self.process.wait(10)}")
        return found

    def devices(self) -> list[dict[str, Any]]:
        """The devices of the next line, which must be a good one."""
        line = self.line()
        assert line["state"] == "ok", line["reason"]
        return list(line["devices"])

    def until(self, holds: Callable[[Line], object], seconds: float = DEADLINE_SECONDS) -> Line:
        """The first line for which something holds."""
        end = time.monotonic() + seconds
        while True:
            line = self.line(max(0.01, end - time.monotonic()))
            if holds(line):
                return line

    def rest(self) -> list[Line]:
        """The lines that are there already."""
        found = []
        while not self._lines.empty():
            line = self._lines.get()
            found += [line] if line is not None else []
        return found

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait(10)
        self._thread.join(10)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
