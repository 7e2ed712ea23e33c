"""Damages a full record file of 64 KiB in every way that counts, and tries the reader on each:

    python tests/rigs/damage.py [--sample N --seed S] [--jobs 2] [--state FILE] [--json]

Every length it can be cut to (65,536), every single flipped bit (524,288), and every page zeroed, copied over another,
or swapped with another. For each: every intact record is shown, as it was written; none else is; a header that cannot be
read in either copy is refused in one sentence; the reader takes at most 50 ms of processor time.

What must be shown follows from where the damage lies, not from a second reading: see :class:`Oracle`.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.record.record_writer import RecordWriter
from jupyter_tfguard.record.records import Record, read_records
from tests.rigs.long_run import Progress, Totals, long_run, options, show

FILE_BYTES = 64 * 1024
PAGE = 4096
HEADER_BYTES = 2 * PAGE
RECORD_BYTES = 256
RECORD_HEAD_BYTES = 32
CAPACITY = (FILE_BYTES - HEADER_BYTES) // RECORD_BYTES
LIMIT_SECONDS = 0.05
BAD = ("slow", "lost_records", "wrong_shown", "undeclared")

TRUNCATIONS = FILE_BYTES
FLIPS = FILE_BYTES * 8
PAGES = FILE_BYTES // PAGE
PAGE_CASES: list[tuple[str, int, int]] = [
    *(("zeroed", page, page) for page in range(PAGES)),
    *(("repeated", one, other) for one, other in itertools.permutations(range(PAGES), 2)),
    *(("swapped", one, other) for one, other in itertools.combinations(range(PAGES), 2)),
    ("both headers zeroed", 0, 1),
]
ALL_CASES = TRUNCATIONS + FLIPS + len(PAGE_CASES)


def full_file(folder: Path) -> bytes:
    """A record file that its own writer has filled, with records of every type and of all lengths."""
    path = folder / "full.ring"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    types = {
        1: {
            "name": "sample",
            "number": "f64",
            "columns": [{"name": f"process.number_{i}_bytes", "unit": "bytes"} for i in range(20)],
        },
        2: {"name": "summary", "number": "f32", "columns": []},
        3: {"name": "event"},
        4: {"name": "event part"},
        5: {"name": "progress"},
    }
    writer = RecordWriter(
        descriptor, name="damage", record_bytes=RECORD_BYTES, capacity=CAPACITY, types=types
    )
    chance = random.Random("damage")
    for number in range(CAPACITY):
        # Every length there can be comes up once, the longest first: 224 records, payloads of 0 to 224 bytes.
        writer.write(1 + number % 5, chance.randbytes(RECORD_BYTES - RECORD_HEAD_BYTES - number))
    os.close(descriptor)
    content = path.read_bytes()
    assert len(content) == FILE_BYTES
    return content


class Oracle:
    """What a reader must show of a damaged file, told from the place of the damage.

    A record is its 32 bytes of head and its payload; the zeros behind it belong to nobody.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.whole: list[Record] = list(read_records(content).records)
        assert [record.sequence for record in self.whole] == list(range(1, CAPACITY + 1))
        # Magic (8 bytes), length of the JSON (u32), CRC-32 (u32), the JSON; the zeros behind it carry nothing.
        self._header_end = 16 + int.from_bytes(content[8:12], "little")
        self._ends = [RECORD_HEAD_BYTES + len(record.payload) for record in self.whole]
        self._without = [self.whole[:i] + self.whole[i + 1 :] for i in range(CAPACITY)]

    def cut(self, length: int) -> tuple[bytes, list[Record] | None]:
        """The file cut to `length` bytes, and its records; None: no header is left."""
        content = self.content[:length]
        if length < self._header_end:
            return content, None
        return content, self.whole[: max(0, length - HEADER_BYTES) // RECORD_BYTES]

    def flipped(self, bit: int) -> tuple[bytes, list[Record] | None]:
        """The file with one bit flipped: one record is gone at most, for the header has two copies."""
        place = bit // 8
        content = bytearray(self.content)
        content[place] ^= 1 << bit % 8
        at, inside = divmod(place - HEADER_BYTES, RECORD_BYTES)
        hit = place >= HEADER_BYTES and inside < self._ends[at]
        return bytes(content), self._without[at] if hit else self.whole

    def page(self, how: str, one: int, other: int) -> tuple[bytes, list[Record] | None]:
        """The file with whole pages damaged; a record counts wherever its page now lies, headers only in their place."""
        order: list[int | None] = list(range(PAGES))
        if how == "swapped":
            order[one], order[other] = other, one
        elif how == "repeated":
            order[other] = one
        else:
            order[one] = order[other] = None
        content = b"".join(bytes(PAGE) if p is None else self._page(p) for p in order)
        if not {0, 1} & set(order[:2]):
            return content, None
        shown = {p for p in order[2:] if p is not None and p > 1}
        per_page = PAGE // RECORD_BYTES
        return content, [r for i, r in enumerate(self.whole) if 2 + i // per_page in shown]

    def _page(self, page: int) -> bytes:
        return self.content[page * PAGE : (page + 1) * PAGE]

    def case(self, number: int) -> tuple[bytes, list[Record] | None]:
        """The case with this number: first all lengths, then all bits, then the pages."""
        if number < TRUNCATIONS:
            return self.cut(number)
        if number < TRUNCATIONS + FLIPS:
            return self.flipped(number - TRUNCATIONS)
        return self.page(*PAGE_CASES[number - TRUNCATIONS - FLIPS])


class Damage:
    """The work of one process: reads damaged files, counts what is wrong."""

    def __init__(self, content: bytes, cases: list[int] | None) -> None:
        self._oracle = Oracle(content)
        self._cases = cases

    def __call__(self, first: int, end: int, progress: Progress) -> Totals:
        """Try the cases `first` .. `end` of all, or of the sample."""
        totals: Totals = {"cases": 0, "slow": 0, "lost_records": 0, "wrong_shown": 0}
        totals |= {"undeclared": 0, "refused": 0, "highest_milliseconds": 0.0, "failures": []}
        numbers: Iterable[int] = range(first, end)
        for number in self._cases[first:end] if self._cases is not None else numbers:
            progress.at(number)
            self._try(number, totals)
        return totals

    def _try(self, number: int, totals: Totals) -> None:
        content, wanted = self._oracle.case(number)
        shown: list[Record] | None = None
        refused = False
        began = time.process_time()
        try:
            shown = read_records(content).records
        except RecordUnreadable as bad:
            refused = "\n" not in str(bad)
        except Exception as bad:
            totals["undeclared"] += 1
            totals["failures"].append({"case": number, "undeclared": repr(bad)[:300]})
            return
        took = time.process_time() - began
        totals["cases"] += 1
        totals["refused"] += refused
        totals["highest_milliseconds"] = max(totals["highest_milliseconds"], round(1000 * took, 3))
        slow = took > LIMIT_SECONDS
        lost = wrong = 0
        if shown != wanted or (shown is None and not refused):
            lost, wrong = _difference(shown or [], wanted or [])
            wrong += wanted is None
        if slow or lost or wrong:
            totals["slow"] += slow
            totals["lost_records"] += lost
            totals["wrong_shown"] += wrong
            failure = {"case": number, "seconds": took, "lost": lost, "wrong": wrong}
            totals["failures"].append(failure)


def _difference(shown: list[Record], wanted: list[Record]) -> tuple[int, int]:
    """How many records are missing, and how many are shown that must not be, twice, or in the wrong order."""
    lost = sum(record not in shown for record in wanted)
    wrong = sum(record not in wanted for record in shown)
    if not lost and not wrong:
        wrong = max(1, len(shown) - len(wanted))
    return lost, wrong


def sample_of(count: int, seed: int) -> list[int]:
    """Cases of every kind: half of them pages and lengths, the others bits."""
    chance = random.Random(f"damage sample {seed}")
    bits_at, pages_at = TRUNCATIONS, TRUNCATIONS + FLIPS
    pages = min(len(PAGE_CASES), math.ceil(count / 10))
    lengths = min(TRUNCATIONS, math.ceil(count * 0.3))
    bits = min(FLIPS, max(0, count - pages - lengths))
    return sorted(
        chance.sample(range(bits_at), lengths)
        + chance.sample(range(bits_at, pages_at), bits)
        + chance.sample(range(pages_at, ALL_CASES), pages)
    )


def main() -> int:
    """Run what the command line asks for."""
    parser = options(str(__doc__).splitlines()[0], count=ALL_CASES)
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, drawn by the seed")
    chosen = parser.parse_args()
    cases = sample_of(chosen.sample, chosen.seed) if chosen.sample else None
    with tempfile.TemporaryDirectory(prefix="tfguard-damage-") as folder:
        content = full_file(Path(folder))
    totals = long_run(
        Damage(content, cases),
        len(cases) if cases is not None else min(chosen.count, ALL_CASES),
        settings={"rig": "damage", "sample": chosen.sample, "seed": chosen.seed if cases else None},
        piece=4096 if cases is None else 1024,
        jobs=chosen.jobs,
        state=chosen.state,
    )
    return show(totals, as_json=chosen.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
