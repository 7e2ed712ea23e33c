"""Two processes on one folder: one swaps a file for links, pipes and folders as fast as it can, the other one works with it.

    python tests/rigs/swap_race.py --count 100000 --seed 1 --json

An escape is a byte read from, written to or deleted at a place outside of the folder. `{"swaps", "worked", "refused",
"escapes"}`: what the swapper did, how often the worker's operations went through or were refused, what got out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.record.folders import PrivateFolder, remove_folder

SECRET = b"somebody else's words\n"
OURS = b"ours"
NAMES = ("a.txt", "b.txt")
_FLICKERS = 250


class Scene:
    """A folder of ours, and around it what must not be touched."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "ours"
        self.inner = self.folder / "inner"
        self.secret = base / "secret.txt"
        self.pipe = base / "pipe"
        self.place = base / "place"
        self.stage = base / "stage"

    def build(self) -> None:
        """Make all of it."""
        for folder in (self.folder, self.place, self.stage):
            folder.mkdir(mode=0o700)
        self.secret.write_bytes(SECRET)
        (self.place / "kept.txt").write_bytes(SECRET)
        os.mkfifo(self.pipe)


def swap(
    scene: Scene, count: int, seed: int, done: Synchronized[int], stop: Synchronized[int]
) -> None:
    """Put one thing after the other into the place of the files and of the inner folder."""
    choose = random.Random(seed)
    number = 0
    while number < count and not stop.value:
        number += 1
        staged = scene.stage / str(number)
        with contextlib.suppress(OSError):
            kind = choose.random()
            if kind < 0.2:
                _swap_folder(scene, staged, choose)
            elif kind < 0.3:
                number += _flicker(scene.secret, scene.folder / choose.choice(NAMES))
            else:
                _swap_file(scene, staged, choose)
        done.value = number


def _flicker(secret: Path, target: Path) -> int:
    """A hard link that comes and goes: in between, the file outside has one name, as a plain file of ours has."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    for _ in range(_FLICKERS):
        with contextlib.suppress(FileExistsError):
            os.link(secret, target)
        os.unlink(target)
    return 2 * _FLICKERS


def _swap_file(scene: Scene, staged: Path, choose: random.Random) -> None:
    target = scene.folder / choose.choice(NAMES)
    kind = choose.choice(("link", "hard", "pipe", "folder", "plain", "none"))
    if target.is_dir() and not target.is_symlink():
        target.rmdir()
    if kind == "link":
        staged.symlink_to(scene.secret)
    elif kind == "hard":
        os.link(scene.secret, staged)
    elif kind == "pipe":
        os.link(scene.pipe, staged)
    elif kind == "plain":
        staged.write_bytes(OURS)
        staged.chmod(0o600)
    elif kind == "folder":
        target.unlink(missing_ok=True)
        target.mkdir()
        return
    else:
        target.unlink(missing_ok=True)
        return
    os.rename(staged, target)


def _swap_folder(scene: Scene, staged: Path, choose: random.Random) -> None:
    if scene.inner.is_symlink():
        scene.inner.unlink()
    else:
        with contextlib.suppress(FileNotFoundError):
            os.rename(scene.inner, staged)
            shutil.rmtree(staged)
    if choose.random() < 0.5:
        scene.inner.symlink_to(scene.place)
    else:
        scene.inner.mkdir(mode=0o700)


class Worker:
    """Does with the folder what the recorder, the readers and the sweepers do."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.choose = random.Random(seed)
        self.worked = self.refused = 0
        self.read_elsewhere = 0
        self._folder = PrivateFolder(scene.folder)
        self._operations: tuple[Callable[[str], None], ...] = (
            *[self._read] * 6,
            self._append,
            self._append,
            self._create,
            self._write_whole,
            self._remove,
            self._inner,
            self._remove_inner,
        )

    def step(self) -> None:
        """One operation."""
        operation = self.choose.choice(self._operations)
        try:
            operation(self.choose.choice(NAMES))
            self.worked += 1
        except (OSError, FolderUnusable):
            self.refused += 1

    def _read(self, name: str) -> None:
        found = self._folder.read(name, 1000)
        if found is None:
            raise FolderUnusable(name)
        if SECRET in found:
            self.read_elsewhere += 1

    def _append(self, name: str) -> None:
        descriptor = self._folder.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, OURS)
        finally:
            os.close(descriptor)

    def _create(self, name: str) -> None:
        descriptor = self._folder.create(name)
        try:
            os.write(descriptor, OURS)
        finally:
            os.close(descriptor)

    def _write_whole(self, name: str) -> None:
        self._folder.write_whole(name, OURS)

    def _remove(self, name: str) -> None:
        self._folder.remove(name)

    def _inner(self, name: str) -> None:
        with PrivateFolder(self.scene.inner) as inner:
            inner.write_whole(name, OURS)
            if SECRET in (inner.read("kept.txt", 1000) or b""):
                self.read_elsewhere += 1

    def _remove_inner(self, name: str) -> None:
        remove_folder(self.scene.inner)


def escapes(scene: Scene, worker: Worker) -> list[str]:
    """What got out."""
    found = []
    if worker.read_elsewhere:
        found.append(f"read elsewhere {worker.read_elsewhere} times")
    if scene.secret.read_bytes() != SECRET:
        found.append(f"written elsewhere: {scene.secret.read_bytes()[:100]!r}")
    there = sorted(p.name for p in scene.place.iterdir())
    if there != ["kept.txt"] or (scene.place / "kept.txt").read_bytes() != SECRET:
        found.append(f"made or deleted elsewhere: {there}")
    return found


@contextlib.contextmanager
def listening(pipe: Path) -> Iterator[Callable[[], bytes]]:
    """The other end of the pipe: what came out of it."""
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)

    def heard() -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(descriptor, 4096)
        return b""

    try:
        yield heard
    finally:
        os.close(descriptor)


def race(count: int, seed: int) -> dict[str, Any]:
    """Run it in a folder of its own."""
    context = multiprocessing.get_context("fork")
    base = Path(tempfile.mkdtemp(prefix="tfguard-race-"))
    try:
        scene = Scene(base)
        scene.build()
        done, stop = context.Value("q", 0), context.Value("q", 0)
        with listening(scene.pipe) as heard:
            swapper = context.Process(target=swap, args=(scene, count, seed, done, stop))
            swapper.start()
            worker = Worker(scene, seed + 1)
            try:
                while done.value < count and swapper.is_alive():
                    for _ in range(50):
                        worker.step()
            finally:
                stop.value = 1
                swapper.join(30)
            found = escapes(scene, worker)
            if told := heard():
                found.append(f"written into a pipe: {told[:100]!r}")
        return {
            "swaps": int(done.value),
            "worked": worker.worked,
            "refused": worker.refused,
            "escapes": found,
        }
    finally:
        shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    """From the command line. Exit code 1 when anything got out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="swaps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    told = race(chosen.count, chosen.seed)
    print(json.dumps(told) if chosen.json else told)
    return 1 if told["escapes"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
