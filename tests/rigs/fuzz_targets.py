"""What the fuzzer feeds, and what must hold: only the declared errors, and the same as the second reader finds."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_tfguard.cli.explain import decoded
from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.errors import BundleNotFound, RecordTooNew, RecordUnreadable
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.gpu_memory import newest_gpu_memory
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.journal import read_events
from jupyter_tfguard.record.progress import newest_progress
from jupyter_tfguard.record.records import RecordFile, read_records
from jupyter_tfguard.record.series import read_samples, read_summaries
from jupyter_tfguard.record.tail import RecordTail
from tests.rigs import second_reader
from tests.rigs.mutate import Parts, mutated_json, mutated_text, raw, record_file

CORPUS = Path(__file__).parent / "corpus"
EXAMPLES = Path(__file__).parents[1] / "examples"
RINGS = (
    "samples.ring",
    "seconds.ring",
    "minutes.ring",
    "events.ring",
    "progress.ring",
    "gpu_memory.ring",
)
TEXTS = ("fault.txt", "signal-SIGTERM.txt", "stderr.0.txt")
BUNDLE_ID = "20261121-021407-4711-3fa9"


class Wrong(Exception):
    """Something does not hold; the text says what."""


def check_records(content: bytes) -> None:
    """A record file: the product's reader finds what the second one finds.

    Raises:
        Wrong: It does not.
    """
    ours, theirs = _verdicts(content)
    if isinstance(ours, str) or isinstance(theirs, str):
        if ours != theirs:
            raise Wrong(f"we find {str(ours)[:200]}, the second reader {str(theirs)[:200]}")
        return
    _same("header", ours.header, theirs.header)
    _same(
        "records",
        [(r.sequence, r.monotonic, r.time, r.type, r.payload) for r in ours.records],
        theirs.records,
    )
    _same("events", read_events(ours.records), second_reader.events(theirs))
    _same("progress", newest_progress(ours.records), second_reader.progress(theirs))
    _same("GPU memory", newest_gpu_memory(ours.records), second_reader.gpu_memory(theirs))
    _same(
        "samples",
        [(s.sequence, s.monotonic, s.time, dict(s.values)) for s in read_samples(ours)],
        second_reader.samples(theirs),
    )
    _same(
        "summaries",
        [
            (s.sequence, s.monotonic, s.time, s.minimum, s.maximum, s.last)
            for s in read_summaries(ours)
        ],
        second_reader.summaries(theirs),
    )


def _verdicts(content: bytes) -> tuple[RecordFile | str, second_reader.Found | str]:
    ours: RecordFile | str
    theirs: second_reader.Found | str
    try:
        ours = read_records(content)
    except RecordTooNew as bad:
        ours = "too new"
        _one_sentence(bad)
    except RecordUnreadable as bad:
        ours = "unreadable"
        _one_sentence(bad)
    try:
        theirs = second_reader.read(content)
    except second_reader.TooNew:
        theirs = "too new"
    except second_reader.Unreadable:
        theirs = "unreadable"
    return ours, theirs


def _one_sentence(bad: Exception) -> None:
    if "\n" in str(bad) or len(str(bad)) > 600:
        raise Wrong(f"an error is not one sentence: {str(bad)[:300]!r}")


def _same(what: str, ours: Any, theirs: Any) -> None:
    # repr: NaN equals NaN, 1 is not True, -0.0 is not 0.0.
    if ours != theirs and repr(ours) != repr(theirs):
        raise Wrong(f"{what}: we show {repr(ours)[:300]}, the second reader {repr(theirs)[:300]}")


class Targets:
    """The inputs and their checks, over a private folder for those that need files.

    Args:
        folder: Empty; on a file system in memory, or the disk is what is measured.
    """

    def __init__(self, folder: Path) -> None:
        self._parts = [Parts.of((CORPUS / name).read_bytes()) for name in RINGS]
        self._recording = folder / "4711-815"
        self._store = BundleStore(folder / "bundles")
        self._bundle = self._store.root / BUNDLE_ID
        shutil.copytree(CORPUS / "recording", self._recording)
        shutil.copytree(CORPUS / "bundle", self._bundle)
        for name in RINGS:
            shutil.copy(CORPUS / name, self._recording)
        self._good = {
            path: path.read_bytes()
            for place in (self._recording, self._bundle)
            for path in place.iterdir()
        }
        known = [self._bundle / "bundle.json", *sorted(EXAMPLES.glob("*/fires-*.json"))]
        self._values = [path.read_bytes() for path in known]
        self._logs = [path.read_bytes() for path in sorted(EXAMPLES.glob("*/*.txt"))]
        self._diagnosis(random.Random(0))  # the rules and their tables are read once a process
        # Each with the share of the inputs that it and those above it get.
        self._turns: list[tuple[float, Callable[[random.Random], None]]] = [
            (0.01, self._diagnosis),
            (0.02, self._pasted),
            (0.06, self._bundles),
            (0.14, self._whole_recording),
            (0.20, self._tail),
            (1.00, self._records),
        ]

    def one(self, seed: int, number: int) -> str:
        """Make input `number` and check it; the name of its kind.

        Raises:
            Wrong: What must hold does not. Any other exception is one that a reader must not raise.
        """
        chance = random.Random(seed << 40 | number)
        drawn = chance.random()
        check = next(check for share, check in self._turns if drawn < share)
        check(chance)
        return check.__name__.strip("_")

    def _records(self, chance: random.Random) -> None:
        check_records(record_file(chance.choice(self._parts), chance))

    def _tail(self, chance: random.Random) -> None:
        """Who follows a file sees records that are there, in order, each once."""
        name = "tail.ring"
        folder = PrivateFolder(self._recording)
        tail = RecordTail(name, 1 << 20)
        for _ in range(2):
            (self._recording / name).write_bytes(record_file(self._parts[3], chance))
            numbers = [record.sequence for record in tail.read(folder)]
            if numbers != sorted(set(numbers)):
                raise Wrong(f"followed out of order: {numbers}")
        folder.remove(name)

    def _whole_recording(self, chance: random.Random) -> None:
        changed = self._change(self._recording, chance)
        try:
            contents = read_recording(self._recording)
            for text in contents.problems:
                _one_sentence(RecordUnreadable(text))
            bundle = capture(identity=ProcessIdentity(4711, 815), recording=contents)
            json.dumps(bundle, default=str)
            # A finding from files alone is the kernel's own word.
            for finding in diagnose(bundle).findings:
                if finding.confidence.name == "CERTAIN":
                    raise Wrong(f"certain, from a recording alone: {finding.cause}")
        except RecordUnreadable as bad:
            _one_sentence(bad)
        finally:
            self._restore(changed)

    def _bundles(self, chance: random.Random) -> None:
        changed = self._change(self._bundle, chance)
        try:
            self._store.entries()
            for read in (self._store.entry, self._store.report, self._store.bundle):
                try:
                    read(BUNDLE_ID)
                except (RecordUnreadable, BundleNotFound) as bad:
                    _one_sentence(bad)
        finally:
            self._restore(changed)

    def _diagnosis(self, chance: random.Random) -> None:
        value = json.loads(chance.choice(self._values))
        for _ in range(chance.choice((1, 2, 3))):
            value = mutated_json(value, chance)
        if not isinstance(value, dict):
            return
        try:
            found = diagnose(value)
        except RecordUnreadable as bad:
            _one_sentence(bad)
            return
        if not found.findings:
            raise Wrong("no finding at all: even `unknown` is one")

    def _pasted(self, chance: random.Random) -> None:
        """Any bytes in, a sentence out."""
        parts = [bytearray(chance.choice(self._logs)) for _ in range(chance.choice((1, 1, 2, 5)))]
        text = decoded(b"\n".join(bytes(raw(part, chance)) for part in parts))
        best = explain(Pasted(text, text if chance.random() < 0.2 else "")).best
        if not best.title.endswith(".") or not best.cause:
            raise Wrong(f"no sentence: {best.title!r}")

    def _change(self, place: Path, chance: random.Random) -> list[Path]:
        paths = sorted(path for path in self._good if path.parent == place)
        changed = chance.sample(paths, min(len(paths), chance.choice((1, 1, 2))))
        for path in changed:
            if path.suffix == ".ring":
                content = record_file(self._parts[RINGS.index(path.name)], chance)
            elif path.suffix == ".json":
                content = mutated_text(self._good[path], chance)
            else:
                content = bytes(raw(bytearray(self._good[path]), chance))
            with open(path, "wb") as file:
                file.write(content)
        return changed

    def _restore(self, changed: list[Path]) -> None:
        for path in changed:
            with open(path, "wb") as file:
                file.write(self._good[path])
