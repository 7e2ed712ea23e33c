"""Feeds the readers of recordings and reports with damaged and forged input:

    python tests/rigs/fuzz.py --count N --seed S [--jobs 2] [--json]
    python tests/rigs/fuzz.py --only NUMBER --seed S     one input again, with the whole traceback

Input `NUMBER` of a seed is always the same. The inputs are the golden recording and a bundle made from it, damaged as bytes
or changed as JSON and as records with a right CRC. Nothing may be raised but the errors that are declared, no input may take
100 ms of processor time, and nothing from a recording may become certain.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.cli.explain import decoded
from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.errors import BundleNotFound, RecordUnreadable
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.records import BLOCK_BYTES, HEADER_BYTES
from jupyter_tfguard.record.tail import RecordTail
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.rigs.long_run import Progress, Totals, long_run, options, show

GOLDEN = Path(__file__).parents[1] / "record" / "golden" / "2.0" / "recording"
EXAMPLES = Path(__file__).parents[1] / "examples"
BUNDLE_ID = "20261121-021407-4711-3fa9"
LIMIT_SECONDS = 0.1
BAD = ("slow", "undeclared", "wrong")
# Values that readers get wrong: borders of integers, what JSON allows and JavaScript does not, text that is none.
ATOMS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2, 64, 4097, 1 << 31, 1 << 63, 10**400, 1.5, 1e308, math.nan),
    *(math.inf, "", "2", "\0", "\u202e", "\ud800", "x" * 5000, [], {}, [[]], {"kind": None}),
)


class Wrong(Exception):
    """Something does not hold; the text says what."""


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The bytes with some flipped, cut off, repeated or put in."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 2, 8))):
        place = chance.randrange(len(found) + 1)
        kind = chance.randrange(4)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[place:] = found[place : place + chance.randrange(1, 5000)]
        elif kind == 2:
            found[place:place] = found[: chance.randrange(200)]
        else:
            found[place : place + 4] = chance.randbytes(4)
    return bytes(found)


def changed_json(value: Any, chance: random.Random) -> Any:
    """The JSON value with one part of it replaced or removed."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = chance.choice(keys)
        if chance.random() < 0.1:
            del value[key]
        else:
            value[key] = changed_json(value[key], chance)
        return value
    return chance.choice(ATOMS)


def forged_records(content: bytes, chance: random.Random) -> bytes:
    """A file of records with its header or some of its records changed, each with a right CRC; or just damaged."""
    kind = chance.randrange(4)
    length = struct.unpack_from("<8sII", content)[1]
    header = json.loads(content[16 : 16 + length])
    size = header["record_bytes"]
    if kind == 0:
        text = json.dumps(changed_json(header, chance)).encode()[: BLOCK_BYTES - 16]
        block = struct.pack("<8sII", b"TFGRECS\n", len(text), zlib.crc32(text)) + text
        return 2 * block.ljust(BLOCK_BYTES, b"\0") + content[HEADER_BYTES:]
    if kind == 1:
        return damaged(content, chance)
    found = bytearray(content)
    for start in range(HEADER_BYTES, len(content) - size + 1, size):
        if chance.random() < 0.5:
            continue
        type, length, sequence, monotonic, wall = struct.unpack_from("<HHQdd", content, start + 4)
        payload = content[start + 32 : start + 32 + length]
        what = chance.randrange(4)
        if what == 0:
            payload = damaged(payload, chance)[: size - 32]
        elif what == 1:
            sequence = chance.choice((0, 1, sequence + 1, 1 << 40, (1 << 64) - 1))
        elif what == 2:
            wall = chance.choice((-1.0, 1e300, math.nan, math.inf, 0.0))
        else:
            type = chance.randrange(1, 9)
        body = struct.pack("<HHQdd", type, len(payload), sequence, monotonic, wall) + payload
        found[start : start + 4 + len(body)] = struct.pack("<I", zlib.crc32(body)) + body
    return bytes(found)


def changed(path: Path, content: bytes, chance: random.Random) -> bytes:
    """The content of a file of a recording or a bundle, changed in a way that fits its kind."""
    if path.suffix == ".ring":
        return forged_records(content, chance)
    if path.suffix == ".json" and chance.random() < 0.7:
        return json.dumps(changed_json(json.loads(content), chance)).encode()
    return damaged(content, chance)


class Targets:
    """The inputs and their checks.

    Args:
        folder: Empty, for files.
    """

    def __init__(self, folder: Path) -> None:
        self._recording = folder / "4711-815"
        shutil.copytree(GOLDEN, self._recording)
        self._store = BundleStore(folder / "bundles")
        bundle = capture(identity=ProcessIdentity(4711, 815), recording=self._recording)
        bundle["id"] = BUNDLE_ID
        entry, report = to_entry_and_report(bundle, diagnose(bundle))
        self._store.save(bundle, report, entry)
        self._values = [path.read_bytes() for path in sorted(EXAMPLES.glob("*/fires-*.json"))]
        self._logs = [path.read_bytes() for path in sorted(EXAMPLES.glob("*/*.txt"))]
        self._turns: list[tuple[float, Callable[[random.Random], None]]] = [
            (0.05, self._diagnosis),
            (0.10, self._pasted),
            (0.25, self._bundles),
            (0.50, self._tail),
            (1.00, self._whole_recording),
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

    def _tail(self, chance: random.Random) -> None:
        """A reader that follows a file sees records that are there, in order, each once."""
        content = (GOLDEN / "events.ring").read_bytes()
        tail = RecordTail("tail.ring", 1 << 20)
        for _ in range(2):
            (self._recording / "tail.ring").write_bytes(forged_records(content, chance))
            records = tail.read(PrivateFolder(self._recording))
            numbers = [record.sequence for record in records]
            if numbers != sorted(set(numbers)):
                raise Wrong(f"followed out of order: {numbers}")
        (self._recording / "tail.ring").unlink()

    def _whole_recording(self, chance: random.Random) -> None:
        before = self._change(self._recording, chance)
        try:
            contents = read_recording(self._recording)
            for text in contents.problems:
                _check_sentence(text)
            bundle = capture(identity=ProcessIdentity(4711, 815), recording=contents)
            json.dumps(bundle, default=str)
            for finding in diagnose(bundle).findings:
                if finding.confidence.name == "CERTAIN":
                    raise Wrong(f"certain, from a recording alone: {finding.cause}")
        except RecordUnreadable as bad:
            _check_sentence(str(bad))
        finally:
            _restore(before)

    def _bundles(self, chance: random.Random) -> None:
        before = self._change(self._store.root / BUNDLE_ID, chance)
        try:
            self._store.entries()
            for read in (self._store.entry, self._store.report, self._store.bundle):
                try:
                    read(BUNDLE_ID)
                except (RecordUnreadable, BundleNotFound) as bad:
                    _check_sentence(str(bad))
        finally:
            _restore(before)

    def _diagnosis(self, chance: random.Random) -> None:
        value = json.loads(chance.choice(self._values))
        for _ in range(chance.choice((1, 2, 3))):
            value = changed_json(value, chance)
        if not isinstance(value, dict):
            return
        try:
            found = diagnose(value)
        except RecordUnreadable as bad:
            _check_sentence(str(bad))
            return
        if not found.findings:
            raise Wrong("no finding at all: even `unknown` is one")

    def _pasted(self, chance: random.Random) -> None:
        text = decoded(damaged(chance.choice(self._logs), chance))
        best = explain(Pasted(text, text if chance.random() < 0.2 else "")).best
        if not best.title.endswith(".") or not best.cause:
            raise Wrong(f"no sentence: {best.title!r}")

    def _change(self, place: Path, chance: random.Random) -> dict[Path, bytes]:
        paths = chance.sample(sorted(place.iterdir()), chance.choice((1, 1, 2)))
        before = {path: path.read_bytes() for path in paths}
        for path, content in before.items():
            path.write_bytes(changed(path, content, chance))
        return before


def _restore(before: dict[Path, bytes]) -> None:
    for path, content in before.items():
        path.write_bytes(content)


def _check_sentence(text: str) -> None:
    if "\n" in text or len(text) > 600:
        raise Wrong(f"an error is not one sentence: {text[:300]!r}")


class Fuzz:
    """The work of one process: makes inputs and checks them."""

    def __init__(self, seed: int, base: Path) -> None:
        self._seed, self._base = seed, base

    def __call__(self, first: int, end: int, progress: Progress) -> Totals:
        """Try the inputs `first` .. `end`."""
        totals: Totals = dict.fromkeys(("inputs", *BAD), 0) | {"kinds": {}, "failures": []}
        with tempfile.TemporaryDirectory(dir=self._base) as folder:
            targets = Targets(Path(folder))
            targets.one(self._seed, first)  # the rules and their tables are read once a process
            for number in range(first, end):
                progress.at(number)
                try:
                    kind, took = _timed(targets, self._seed, number)
                except Wrong as bad:
                    _count("wrong", number, str(bad), totals)
                except Exception:
                    _count("undeclared", number, traceback.format_exc()[-500:], totals)
                else:
                    totals["kinds"][kind] = totals["kinds"].get(kind, 0) + 1
                    # A busy machine may make one turn slow, a slow input makes each slow.
                    again = (_timed(targets, self._seed, number)[1] for _ in range(3))
                    if took > LIMIT_SECONDS and min(again) > LIMIT_SECONDS:
                        _count("slow", number, f"{took:.3f} s", totals)
            totals["inputs"] = end - first
        return totals


def _timed(targets: Targets, seed: int, number: int) -> tuple[str, float]:
    """The kind of an input, and the processor time that it took in seconds."""
    began = time.process_time()
    return targets.one(seed, number), time.process_time() - began


def _count(name: str, number: int, text: str, totals: Totals) -> None:
    totals[name] += 1
    totals["failures"].append({"input": number, name: text})


def main() -> int:
    """Run what the command line asks for."""
    parser = options(str(__doc__).splitlines()[0].rstrip(":"), count=20_000)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input")
    chosen = parser.parse_args()
    # In memory where that is possible: the disk is not under test.
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tfguard-fuzz-", dir=base) as folder:
        if chosen.only is not None:
            print(Targets(Path(folder)).one(chosen.seed, chosen.only))
            return 0
        work = Fuzz(chosen.seed, Path(folder))
        totals = long_run(work, chosen.count, piece=2_500, jobs=chosen.jobs)
    return show(totals | {"seed": chosen.seed}, as_json=chosen.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
