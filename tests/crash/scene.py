"""One way for a kernel to end, and what its report must say: played in real kernels of a real server, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from jupyter_core.utils import ensure_event_loop

from jupyter_tfguard.diagnosis.rule import all_rules
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.report import text
from tests.crash.conftest import Kernel, RecordingServer, cannot_be_played

# More would make each other wait: starting a kernel takes a second of a processor.
AT_ONCE = 3
_REPORT_SECONDS = 90.0
# By then the counters of its memory group were read once while it was well: they are once a second.
_SETTLE_SECONDS = 1.7
# A watcher that takes something for a death has told of it by then.
_QUIET_SECONDS = 2.5

Play = Callable[[Kernel], None]


class CannotBePlayed(Exception):
    """A right or a library is missing on this machine; the text says which."""


@dataclass(frozen=True)
class Scene:
    """One way to end.

    Attributes:
        name: In a few words.
        play: Code of a cell that does not come back, or a function that does it to a kernel; empty for a kernel that never
            answers.
        causes: What the report may say, the best answer first; none at all when no report may be made.
        chip: How it ended, as the report tells it; empty for any.
        confidence: Of the answer; empty for any.
        says: Must stand in the printed report.
        setting: Name of the kernel specification.
    """

    name: str
    play: str | Play
    causes: tuple[str, ...]
    chip: str = ""
    confidence: str = ""
    says: str = ""
    setting: str = "python3"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Played:
    """What came of it.

    Attributes:
        report: None when none was made.
        seconds: From the last cell to the report.
        missing: Why it could not be played here.
        log: Where a report was expected and none came: what became of the process, and the end of the server's log.
    """

    scene: Scene
    report: dict[str, Any] | None
    seconds: float = 0.0
    missing: str = ""
    log: str = ""

    @property
    def cause(self) -> str:
        """The answer; empty without a report."""
        return "" if self.report is None else str(self.report["cause"])

    @property
    def confidence(self) -> str:
        """How sure it was; empty without a report."""
        return "" if self.report is None else str(self.report["confidence"])

    @property
    def printed(self) -> str:
        """The report as people read it."""
        if self.report is None:
            return f"no report; {self.log}"
        return text.render(self.report)

    @property
    def right(self) -> bool:
        """True for one of the right answers."""
        return self.cause in (self.scene.causes or ("",))

    @property
    def wrong_certain(self) -> list[str]:
        """Causes that were called certain and are wrong: of all findings, but for what the best one explains."""
        if self.report is None:
            return []
        found = [self.report, *self.report["other_findings"]]
        sure = [str(f["cause"]) for f in found if f["confidence"] == "certain"]
        explained = next(rule.outranks for rule in all_rules() if rule.cause == self.cause)
        wrong = [cause for cause in sure if cause not in self.scene.causes]
        return [cause for cause in wrong if not self.right or cause not in explained]


def cell(code: str, *before: str) -> Play:
    """Run the cells `before`, then one that does not come back."""

    def play(kernel: Kernel) -> None:
        for earlier in before:
            reply = kernel.run(earlier)
            assert reply["status"] == "ok", reply
        kernel.start(code)

    return play


def play(server: RecordingServer, scene: Scene) -> Played:
    """Play one scene in a kernel of its own."""
    started = time.monotonic()
    kernel = _start(server, scene)
    try:
        if scene.play:
            kernel.wait_until_watched()
        time.sleep(max(0.0, started + _SETTLE_SECONDS - time.monotonic()))
        process = ProcessIdentity.of(kernel.pid) if scene.play else None
        began = time.monotonic()
        try:
            if scene.play:
                (cell(scene.play) if isinstance(scene.play, str) else scene.play)(kernel)
        except CannotBePlayed as no:
            return Played(scene, None, missing=str(no))
        if not scene.causes:
            time.sleep(_QUIET_SECONDS)
        ends = time.monotonic() + (_REPORT_SECONDS if scene.causes else 0)
        while not (entries := kernel.entries()) and time.monotonic() < ends:
            time.sleep(0.05)
        report = server.get(f"tfguard/api/crashes/{entries[0]['id']}") if entries else None
        log = ""
        if report is None and scene.causes:
            alive = process is not None and process.is_running()
            fate = "its process still runs" if alive else "its process has ended"
            log = f"{fate}; the server says:\n{server.log_tail()}"
        return Played(scene, report, time.monotonic() - began, log=log)
    finally:
        kernel.close()
        ensure_event_loop().close()  # of this thread's client


def _start(server: RecordingServer, scene: Scene) -> Kernel:
    name = "".join(c if c.isalnum() else "-" for c in scene.name)[:60]
    kernel = Kernel(server, name, scene.setting, answers=bool(scene.play))
    if scene.play and kernel.entries():
        # Another process took one of its ports between the choice and the start; the server has started it anew.
        kernel.close()
        kernel = Kernel(server, name, scene.setting)
    return kernel


class Theatre:
    """Plays scenes side by side; the outcome of each is asked for by its name.

    Args:
        server: The kernels' server.
        scenes: What will be asked for, so that it is played in the meantime.
    """

    def __init__(self, server: RecordingServer, scenes: Iterable[Scene]) -> None:
        self._server = server
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._played: dict[str, Future[Played]] = {}
        for scene in scenes:
            self._begin(scene)

    def _begin(self, scene: Scene) -> Future[Played]:
        if scene.name not in self._played:
            self._played[scene.name] = self._pool.submit(play, self._server, scene)
        return self._played[scene.name]

    def outcome(self, scene: Scene) -> Played:
        """What came of it; waits for it."""
        return self._begin(scene).result()

    def played(self, scene: Scene) -> Played:
        """The same for a test, which is skipped where it cannot be played."""
        found = self.outcome(scene)
        if found.missing:
            cannot_be_played(found.missing)
        return found

    def close(self) -> None:
        """Play no more."""
        self._pool.shutdown(cancel_futures=True)
