"""How a death is timed: a gate before the last cell, a stopwatch on the process, and what a tool said when."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.peers.deaths import Death
from tests.rigs.waiting import wait_until

# A text that comes later than this after the one before it is not waited for.
QUIET_SECONDS = 5.0
NOTHING_SECONDS = 15.0
# tfguard reports a hang after five minutes by default; the comparison sets this, and its user waits a little longer.
HANG_SECONDS = 20.0
PATIENCE_SECONDS = 30.0
# A machine that is busy with other work may need minutes for a start.
DEADLINE_SECONDS = 400.0
_POLL_SECONDS = 0.05

_GATE = """\
class gate:
    def note():
        import pathlib
        import time
        pathlib.Path({moment!r}).write_text(str(time.time()))
    def wait():
        import os
        import pathlib
        import time
        pathlib.Path({pid!r} + "~").write_text(str(os.getpid()))
        os.rename({pid!r} + "~", {pid!r})
        while not pathlib.Path({go!r}).exists():
            time.sleep(0.02)
gate.wait()
"""


Read = Callable[[], Iterable[tuple[str, str]]]


@dataclass(frozen=True)
class Said:
    """One text.

    Attributes:
        where: Place in the tool, such as its dialog.
        text: As it was shown or stored.
        seconds: After the death; None for what was looked up later.
        after_restart: True when it came after the user's restart.
    """

    where: str
    text: str
    seconds: float | None = None
    after_restart: bool = False


@dataclass
class Gate:
    """Holds the last cell back until the stopwatch runs.

    Args:
        folder: For three small files.
    """

    folder: Path
    ended_at: float | None = field(default=None, init=False)
    restarted_at: float | None = field(default=None, init=False)
    _begun: set[tuple[str, str]] = field(default_factory=set, init=False)

    @property
    def code(self) -> str:
        """Of the first cell."""
        return _GATE.format(**{name: str(self.folder / name) for name in ("pid", "go", "moment")})

    def open(self, death: Death, read: Read) -> None:
        """Let the last cell run, with a stopwatch on its process.

        Args:
            death: What happens then.
            read: Places and texts that are shown now; what is shown before says nothing about the death.
        """
        wait_until((self.folder / "pid").exists, "the first cell", seconds=DEADLINE_SECONDS)
        pid = int((self.folder / "pid").read_text())
        handle = os.pidfd_open(pid)
        self._begun = set(read())
        if death.kernel_ends:
            threading.Thread(target=self._watch, args=(handle,), daemon=True).start()
        else:
            os.close(handle)
        (self.folder / "go").touch()
        if death.act is not None:
            time.sleep(
                1.4
            )  # the last cell runs by then; not in step with those who poll once a second
            death.act(pid)

    def _watch(self, handle: int) -> None:
        select.select([handle], [], [])
        self.ended_at = time.time()
        os.close(handle)

    def moment(self) -> float | None:
        """When the process ended, or what the cell noted; None before."""
        if self.ended_at is None and (text := _text(self.folder / "moment")):
            self.ended_at = float(text)
        return self.ended_at

    def observe(
        self,
        read: Read,
        restart: Callable[[], object] | None = None,
    ) -> list[Said]:
        """Everything that `read` shows from the death on, until nothing new comes.

        Args:
            read: Places and texts that are shown now.
            restart: What the user does after some patience.
        """
        shown = dict.fromkeys(self._begun, 0.0)
        gives_up = time.time() + DEADLINE_SECONDS
        ends, waits = gives_up, restart is not None
        while (now := time.time()) < ends:
            before = len(shown)
            for pair in read():
                shown.setdefault(pair, now)
            time.sleep(_POLL_SECONDS)
            if (died := self.moment()) is None:
                continue
            if ends == gives_up:
                ends = died + (PATIENCE_SECONDS if waits else NOTHING_SECONDS)
            elif len(shown) > before and not waits:
                ends = now + QUIET_SECONDS
            if waits and now > ends - 1:
                self.restarted_at, waits = now, False
                assert restart is not None
                restart()
                ends = time.time() + NOTHING_SECONDS
        if died is None:
            raise AssertionError(f"no death within {DEADLINE_SECONDS:.0f} s; shown: {list(shown)}")
        return [
            Said(*pair, round(max(0.0, at - died), 3), at > (self.restarted_at or at))
            for pair, at in shown.items()
            if pair not in self._begun
        ]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
