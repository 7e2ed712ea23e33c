"""Runs ``jupyter tfguard why FILE`` on changed bundles, as a stranger may send them:

    python -m tests.rigs.why_bundles --count 10000 --seed 1

Each bundle is one of the examples with some values replaced, removed or damaged as bytes, in a zip file or a folder. The command
must answer in text and in JSON without a traceback, in two seconds of processor time, with no byte that a terminal obeys, and
its JSON must be one that every reader accepts: no NaN.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import random
import re
import sys
import tempfile
import time
import traceback
import zipfile
from pathlib import Path
from typing import Any

from jupyter_tfguard.cli import main as run_command
from tests.rigs.fuzz import EXAMPLES, changed_json, damaged

BUNDLE_ID = "20261121-021407-4711-3fa9"
LIMIT_SECONDS = 2.0
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Wrong(Exception):
    """Something does not hold; the text says what."""


class Bundles:
    """Changed bundles and the checks of the command's answers.

    Args:
        folder: Empty, for files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = [path.read_bytes() for path in sorted(EXAMPLES.glob("*/*.json"))]

    def one(self, seed: int, number: int) -> tuple[bool, float]:
        """Check bundle `number` of a seed. Returns: whether it was explained, and the seconds of processor time.

        Raises:
            Wrong: What must hold does not. Any other exception is a traceback that a user would see.
        """
        chance = random.Random(seed << 40 | number)
        path = self._written(self._content(chance), chance)
        began = time.process_time()
        codes = [self._answer(path, as_json) for as_json in (False, True)]
        seconds = time.process_time() - began
        if codes[0] != codes[1]:
            raise Wrong(f"exit codes differ: {codes}")
        if seconds > LIMIT_SECONDS:
            raise Wrong(f"took {seconds:.1f} s")
        return codes[0] == 0, seconds

    def _content(self, chance: random.Random) -> bytes:
        value: Any = json.loads(chance.choice(self._values))
        kept = value.get("format")
        for _ in range(chance.choice((1, 2, 3, 8))):
            part = chance.choice(list(value))  # not the whole: that is refused at once
            value[part] = copy.deepcopy(changed_json(value[part], chance))
        if chance.random() < 0.95:
            value |= {"id": BUNDLE_ID, "format": kept}
        content = json.dumps(value).encode("utf-8", "surrogatepass")
        return damaged(content, chance) if chance.random() < 0.1 else content

    def _written(self, content: bytes, chance: random.Random) -> Path:
        if chance.random() < 0.5:
            folder = self._folder / "unpacked"
            folder.mkdir(exist_ok=True)
            (folder / "bundle.json").write_bytes(content)
            return folder
        path = self._folder / "exported.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bundle.json", content)
        if chance.random() < 0.1:
            path.write_bytes(damaged(path.read_bytes(), chance))
        return path

    def _answer(self, path: Path, as_json: bool) -> int:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_command(["why", str(path), *(["--json"] if as_json else [])])
        said = out.getvalue() if code == 0 else err.getvalue()
        if code not in (0, 2) or not said.strip():
            raise Wrong(f"exit code {code}, and {len(said)} characters")
        if code == 2 and said.count("\n") != 1:
            raise Wrong(f"an error of several lines: {said[:300]!r}")
        if obeyed := _OBEYED.search(said):
            raise Wrong(f"a terminal would obey {obeyed[0]!r}")
        if as_json and code == 0:
            json.loads(said, parse_constant=_refuse)
        said.encode()
        return code


def _refuse(name: str) -> None:
    raise Wrong(f"{name} in JSON")


def main() -> None:
    """Check many bundles and print what was found."""
    parser = argparse.ArgumentParser(description="Changed bundles and `jupyter tfguard why FILE`")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    explained, longest, bad = 0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        bundles = Bundles(Path(folder))
        for number in range(chosen.count):
            try:
                is_explained, seconds = bundles.one(chosen.seed, number)
            except Exception:  # a traceback that a user would see is what is counted here
                bad += 1
                if bad <= 5:
                    print(f"bundle {number}:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
                continue
            explained, longest = explained + is_explained, max(longest, seconds)
    print(
        f"{chosen.count} bundles: {explained} explained, {chosen.count - explained - bad} refused in a sentence, "
        f"{bad} wrong; longest answer {longest * 1000:.0f} ms of processor time"
    )
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
