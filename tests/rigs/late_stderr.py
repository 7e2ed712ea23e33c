"""Lets processes that carry the real recorder die in many ways, each just after its last native words:

    python tests/rigs/late_stderr.py --count N --seed S [--jobs J] [--dir FOLDER] [--unwatched] [--json]

prints ``{"deaths", "lost_words", "lost_stacks", "wrong_deaths", "by_kind", ...}``. Each process is forked from a warm one
and starts the recording, the stderr tail and the files of fatal signals as a kernel does; the rig holds its pipe as a watcher
does, unless `--unwatched`. What it says, by which way, how much and when it dies follow from seed and number. A word is lost when it was written and is not in the record,
or not in its place. The ways to die: ``tests/rigs/deaths.py``. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.kernel.capture.faults import FaultFiles
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.native_text import KEPT_BYTES
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.record.stderr_tail import StderrTail
from jupyter_tfguard.watch.crash.held_stderr import HeldStderr
from tests.rigs.deaths import Kind, kinds, write_natively
from tests.rigs.long_run import Progress, Totals, long_run, options, show

BAD = ("lost_words", "lost_stacks", "wrong_deaths")
LIFE_SECONDS = 30
_KINDS = kinds()
_METRICS = tuple(
    Metric(f"process.number_{i}_bytes", f"Number {i}", Unit.BYTES, "derived") for i in range(12)
)
_SYLLABLES = ("al", "bra", "co", "dé", "ev", "fi", "ög", "hu", "ix", "jo", "界", "lu")
_OWN_FAULT = 70


@dataclass(frozen=True)
class Life:
    """What one process says, and how it dies.

    Attributes:
        pieces: What it writes, in order; each with the way: natively, by Python, by a thread, or by a child.
        pause_seconds: Between the last word and the death.
        read: Whether somebody reads what is forwarded.
    """

    kind: Kind
    pieces: tuple[tuple[str, bytes], ...]
    pause_seconds: float
    read: bool

    @classmethod
    def drawn(cls, seed: int, number: int) -> Life:
        """The life `number`; the kinds take turns."""
        chance = random.Random(f"{seed}/{number}")
        # Some turn the files over once or more before they die.
        lines = chance.choice(
            (1, 2, 5, 20, 60, 1 + chance.randrange(500), 1000 + chance.randrange(3000))
        )
        text: list[bytes] = []
        for line in range(lines):
            words = (
                "".join(chance.choices(_SYLLABLES, k=chance.randrange(1, 6)))
                for _ in range(chance.randrange(8))
            )
            text.append(f"{number}.{line} {' '.join(words)}".rstrip().encode() + b"\n")
        if chance.random() < 0.3:
            text[-1] = text[-1].rstrip(b"\n")
        return cls(
            kind=_KINDS[number % len(_KINDS)],
            pieces=tuple(_cut(text, chance)),
            pause_seconds=chance.choice((0.0, 0.0, chance.uniform(0, 0.012))),
            read=chance.random() < 0.5,
        )

    @property
    def text(self) -> bytes:
        """Everything that it writes itself."""
        return b"".join(piece for _, piece in self.pieces)

    def live(self, root: Path, ready: int, go: int) -> None:
        """Begin to record, speak and die. Never to be called but in a process that may."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(LIFE_SECONDS)  # a life that hangs is a wrong death
        old = os.open(os.devnull, os.O_WRONLY)
        if not self.read:
            _, old = os.pipe()  # soon full, and never read
        os.dup2(old, 2)
        identity = ProcessIdentity.of(os.getpid())
        assert identity is not None
        recording = Recording(root, identity, {"kernel_id": "rig"}, _METRICS)
        assert FaultFiles(recording.folder).start() == "ours"
        tail = StderrTail(recording.folder, _problem)
        tail.start()
        os.write(
            ready,
            json.dumps(
                {f"stderr_{name}": part for name, part in (tail.shared or {}).items()}
            ).encode(),
        )
        os.read(go, 2)
        recording.event("cell_start", execution_count=1)
        values = {metric.name: 1.0 for metric in _METRICS}
        recording.sample(Sample(1, time.monotonic(), time.time(), values))
        for way, piece in self.pieces:
            _say(way, piece)
        if self.pause_seconds:
            time.sleep(self.pause_seconds)
        self.kind.die()


def _cut(text: list[bytes], chance: random.Random) -> list[tuple[str, bytes]]:
    pieces = []
    while text:
        # A child costs a fork: not one for each line.
        way = chance.choices(("native", "python", "thread", "child"), (10, 10, 2, 1))[0]
        count = chance.choice((1, 1, 3, 50)) if len(text) < 100 else 200
        pieces.append((way, b"".join(text[:count])))
        text = text[count:]
    return pieces


def _problem(text: str) -> None:
    os._exit(_OWN_FAULT)


def _say(way: str, text: bytes) -> None:
    if way == "native":
        write_natively(text)
    elif way == "python":
        os.write(2, text)
    elif way == "thread":
        thread = threading.Thread(target=write_natively, args=(text,))
        thread.start()
        thread.join()
    else:
        child = os.fork()
        if child == 0:
            write_natively(text)
            os._exit(0)
        os.waitpid(child, 0)


def judge(life: Life, status: int, path: Path) -> dict[str, Any]:
    """What is wrong with the record of a life: numbers by the names in :data:`BAD`, and in which way."""
    kind = life.kind
    try:
        contents = read_recording(path)
    except RecordUnreadable as bad:
        return {"lost_words": len(life.text.split()), "why": str(bad)}
    ended = os.waitstatus_to_exitcode(status)
    if not ended_as(kind, ended):
        return {"wrong_deaths": 1, "why": f"ended by {ended}"}
    return _words(life, contents.stderr_tail) | _stacks(kind, contents)


def ended_as(kind: Kind, ended: int) -> bool:
    """True for the exit status that this kind of death has."""
    return ended == (kind.code if kind.signal is None else -kind.signal)


def _words(life: Life, tail: str) -> dict[str, Any]:
    said = re.search(f"(?:{life.kind.says})\\Z", tail)
    if said is None:
        return {"lost_words": 1, "why": f"it should end with {life.kind.says!r}: {tail[-200:]!r}"}
    written = (life.text + said[0].encode())[-KEPT_BYTES:].decode("utf-8", "replace")
    if tail == written:
        return {}
    lost = len(set(written.split()) - set(tail.split()))
    return {"lost_words": max(lost, 1), "why": f"{len(tail)} of {len(written)}: {tail[-200:]!r}"}


def _stacks(kind: Kind, contents: RecordingContents) -> dict[str, Any]:
    title = "" if kind.fault is None else f"Fatal Python error: {kind.fault}\n"
    found = contents.fault_text
    if not found.startswith(title) or bool(found) != bool(title):
        return {"lost_stacks": 1, "why": f"stack: {found[:300]!r}"}
    where = contents.signal_texts.get(kind.stopped, "") if kind.stopped else found
    if kind.stack not in where:
        return {"lost_stacks": 1, "why": f"{kind.stack} is not in {where[:300]!r}"}
    return {}


class LateStderr:
    """The work of the rig.

    Args:
        seed: Of all lives.
        watched: Whether the rig holds the pipes, as a watcher does.
        folder: Where recordings are made; None: the temporary folder.
    """

    def __init__(self, seed: int, folder: str | None, *, watched: bool = True) -> None:
        self._seed, self._folder, self._watched = seed, folder, watched

    def __call__(self, first: int, end: int, progress: Progress) -> Totals:
        """Deaths `first` to `end`."""
        totals: Totals = {"deaths": 0, "words": 0, "by_kind": {}, "failures": []}
        totals |= dict.fromkeys(BAD, 0)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for number in range(first, end):
                progress.at(number)
                life = Life.drawn(self._seed, number)
                self._one(number, life, Path(folder) / str(number), totals)
        return totals

    def _one(self, number: int, life: Life, root: Path, totals: Totals) -> None:
        ready, tell_ready = os.pipe()
        wait_go, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                try:
                    life.live(root, tell_ready, wait_go)
                except BaseException:
                    (root.parent / f"{number}.txt").write_text(traceback.format_exc())
            os._exit(_OWN_FAULT)
        os.close(tell_ready)
        held = HeldStderr()
        said, process = os.read(ready, 1000), ProcessIdentity.of(pid)
        if self._watched and said and process is not None:
            held.hold(process, json.loads(said))
        os.write(go, b"go")
        for descriptor in (ready, wait_go, go):
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        path = next(iter(root.glob("*")), root / "none")
        held.finish(path)
        found = judge(life, status, path)
        shutil.rmtree(root, ignore_errors=True)
        totals["deaths"] += 1
        totals["words"] += len(life.text.split())
        totals["by_kind"][life.kind.name] = totals["by_kind"].get(life.kind.name, 0) + 1
        if found:
            with contextlib.suppress(OSError):
                found["why"] += (root.parent / f"{number}.txt").read_text()
            for name in BAD:
                totals[name] += found.get(name, 0)
            totals["failures"].append({"death": number, "kind": life.kind.name, **found})


def main() -> int:
    """Run what the command line asks for."""
    parser = options(str(__doc__).splitlines()[0].rstrip(":"), count=1000, jobs=os.cpu_count() or 1)
    parser.add_argument("--unwatched", action="store_true", help="nobody holds the pipes")
    parser.add_argument("--dir", help="where the recordings lie; default: the temporary folder")
    chosen = parser.parse_args()
    totals = long_run(
        LateStderr(chosen.seed, chosen.dir, watched=not chosen.unwatched),
        chosen.count,
        piece=100,
        jobs=chosen.jobs,
        stall_seconds=2.0 * LIFE_SECONDS,
    )
    return show(totals | {"seed": chosen.seed}, as_json=chosen.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
