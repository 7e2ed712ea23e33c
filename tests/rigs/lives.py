"""What the kill loop kills: the life of a recording, from its start to its removal. What must be there then: kills.py.

The life is a real :class:`Recording` in a forked process. Before and after each call it writes numbers on a page of
memory that its parent shares, so that the parent knows after the kill what had been finished. All values follow from
seed and number: a record that is torn, or was never written, shows.
"""

from __future__ import annotations

import mmap
import random
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record import recording as recording_module
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

PHASES = ("start", "header", "record", "rotate", "close")
BEFORE, AFTER = "before", "after"
METRICS = tuple(
    Metric(f"process.number_{i}_bytes", f"Number {i}", Unit.BYTES, "derived") for i in range(12)
)
IDENTITY = ProcessIdentity(4711, 815)
EPOCH = 1_800_000_000.0
REAL = {
    name: getattr(recording_module, name)
    for name in (
        *("SAMPLES_CAPACITY", "SECONDS_CAPACITY", "MINUTES_CAPACITY", "EVENTS_CAPACITY"),
        "GROW_BYTES",
    )
}

# Words of the shared page. Of what is counted twice, the first is the number begun, the second the number finished.
PHASE, MOMENT = 0, 1
HEADER, SAMPLE, EVENT, PROGRESS, END = 2, 4, 6, 8, 10
REMOVAL = 12
WORDS = 13
# Behind them, for each phase, how long it took, in nanoseconds.
SPANS = WORDS


class Page:
    """A page of numbers that outlives the process that wrote them."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        # A store through a cast view is one machine word: the kill cannot tear it.
        self.words = memoryview(self._memory).cast("Q")

    def clear(self) -> None:
        """Back to the state before a life."""
        for word in range(SPANS + len(PHASES) + 1):
            self.words[word] = 0

    @contextmanager
    def counted(self, word: int) -> Iterator[int]:
        """Number the next one of its kind, begun now, finished when the block ends."""
        number = self.words[word] + 1
        self.words[word] = number
        yield number
        self.words[word + 1] = number

    def enter(self, phase: str) -> None:
        """A phase begins, and the one before has ended."""
        now = time.monotonic_ns()
        self.words[SPANS + self.words[PHASE]] = now - self.words[MOMENT]
        self.words[MOMENT] = now
        self.words[PHASE] = PHASES.index(phase) + 1 if phase != AFTER else len(PHASES) + 1

    def span_seconds(self, phase: str) -> float:
        """How long a phase took that has ended."""
        return self.words[SPANS + PHASES.index(phase) + 1] / 1e9

    @property
    def phase(self) -> str:
        """The phase the life is in; `BEFORE` and `AFTER` when in none."""
        return (BEFORE, *PHASES, AFTER)[self.words[PHASE]]


@dataclass(frozen=True)
class Plan:
    """One life: how big its files are, how far its clock goes with each sample, and in which phase it is to die.

    The real sizes come up as well; they never wrap around in so short a life.
    """

    seed: int
    phase: str
    samples: int
    events: int
    seconds: int
    minutes: int
    grow_bytes: int
    step_seconds: float
    removes: bool

    @classmethod
    def drawn(cls, seed: int, number: int) -> Plan:
        """The plan of life `number`; the phases take turns."""
        chance = random.Random(f"{seed}/{number}")
        phase = PHASES[number % len(PHASES)]
        small = phase == "rotate" or chance.random() < 0.3
        return cls(
            seed=chance.getrandbits(48),
            phase=phase,
            samples=chance.choice((2, 3, 8, 31)) if small else REAL["SAMPLES_CAPACITY"],
            events=chance.choice((8, 13, 32)) if small else REAL["EVENTS_CAPACITY"],
            seconds=chance.choice((5, 40, 300)) if small else REAL["SECONDS_CAPACITY"],
            minutes=chance.choice((3, 20, 300)) if small else REAL["MINUTES_CAPACITY"],
            grow_bytes=chance.choice((4096, 65536)) if small else REAL["GROW_BYTES"],
            step_seconds=chance.choice((0.125, 0.75, 1.0, 3.0, 60.0)) if small else 0.125,
            removes=chance.random() < 0.5,
        )

    def size_files(self) -> None:
        """Make the recording's files as big as planned, in this process."""
        for name in REAL:
            planned = getattr(self, name.removesuffix("_CAPACITY").lower())
            setattr(recording_module, name, planned)


def number_of(seed: int, kind: str, number: int) -> int:
    """A number that nobody writes by chance, 32 bits."""
    return zlib.crc32(b"%d %s %d" % (seed, kind.encode(), number))


def text_of(seed: int, number: int) -> str:
    """The text of an event: many are short, others need several records, some are too long to be kept whole."""
    length = number_of(seed, "length", number) % (200, 900, 2400, 3000, 5000)[number % 5]
    return f"{number_of(seed, 'text', number):08x}é" * (length // 10 + 1)


def event_of(seed: int, number: int) -> dict[str, Any]:
    """The event with this number, as it was handed in."""
    return {"kind": "rig", "number": number, "text": text_of(seed, number)}


def pad_of(seed: int, number: int) -> str:
    """What the header with this number holds, of any length."""
    return f"{number_of(seed, 'pad', number):08x}" * (number_of(seed, "pads", number) % 900)


def sample_of(plan: Plan, number: int) -> Sample:
    """The sample with this number; some of its values are unknown."""
    drawn = number_of(plan.seed, "sample", number)
    values = {
        metric.name: float(drawn * (2 * i + 1) & 0xFFFFFFFF)
        for i, metric in enumerate(METRICS)
        if drawn >> i & 7
    }
    moment = number * plan.step_seconds
    return Sample(number, 1000.0 + moment, EPOCH + moment, values)


class _Counted(Recording):
    """A recording that says on the page how often it finished its header, the one of its beginning included."""

    def __init__(self, life: Life) -> None:
        self._life = life
        super().__init__(life.root, IDENTITY, {"kernel_id": "rig"}, METRICS)

    def write_header(self, more: dict[str, Any]) -> None:
        with self._life.page.counted(HEADER) as number:
            ours = {"number": number, "pad": pad_of(self._life.plan.seed, number)}
            super().write_header(more | ours)


@dataclass(frozen=True)
class Life:
    """One recording from its start on, in the process that is to die."""

    plan: Plan
    root: Path
    page: Page

    @property
    def path(self) -> Path:
        """The recording's folder."""
        return self.root / IDENTITY.folder_name

    def live(self, arm: Callable[[], None] | None) -> None:
        """Go through the phases. `arm` starts what kills, when the planned phase begins; None: come to an end."""
        page, plan = self.page, self.plan
        plan.size_files()
        chance = random.Random(plan.seed)
        self._enter("start", arm)
        recording = _Counted(self)
        self._enter("header", arm)
        self._write(recording, lambda: "header", arm)
        self._enter("record", arm)
        kinds = ("sample", "sample", "sample", "event", "event", "progress")
        self._write(recording, lambda: chance.choice(kinds), arm)
        self._enter("rotate", arm)
        self._write(recording, lambda: chance.choice(kinds), arm)
        self._enter("close", arm)
        with page.counted(END):
            recording.end("shutdown")
        recording.close()
        if plan.removes:
            page.words[REMOVAL] = 1
            recording.remove()
        page.enter(AFTER)
        while arm is not None:
            time.sleep(1)

    def _enter(self, phase: str, arm: Callable[[], None] | None) -> None:
        self.page.enter(phase)
        if phase == self.plan.phase and arm is not None:
            arm()

    def _write(
        self, recording: Recording, kind: Callable[[], str], arm: Callable[[], None] | None
    ) -> None:
        """A few writes, or writes without end in the phase in which to die."""
        dies_here = arm is not None and self.page.phase == self.plan.phase
        left = 3
        while dies_here or left:
            left -= 1
            self._write_one(recording, kind())

    def _write_one(self, recording: Recording, kind: str) -> None:
        page, seed = self.page, self.plan.seed
        if kind == "header":
            recording.write_header({})
        elif kind == "sample":
            with page.counted(SAMPLE) as number:
                recording.sample(sample_of(self.plan, number))
        elif kind == "event":
            with page.counted(EVENT) as number:
                recording.event(**event_of(seed, number))
        else:
            with page.counted(PROGRESS) as number:
                value = {"number": number, "check": number_of(seed, "progress", number)}
                recording.set_progress(value)
