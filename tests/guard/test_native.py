"""The native sampler on memory groups made of files: the same figures as memory/available.py, trips, and what is missing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.guard import native
from jupyter_tfguard.guard.native import NativeGuard
from jupyter_tfguard.levels import Levels
from jupyter_tfguard.memory.available import headroom
from jupyter_tfguard.memory.groups import MemoryGroup
from jupyter_tfguard.units import MIB
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.quick
LIMIT = 512 * MIB
LEVELS = Levels(40 * MIB, 60 * MIB, 0.06, 16 * MIB, LIMIT, own_fraction=0)
SIGNAL = signal.SIGRTMIN + 9
_NAMES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    2: ("memory.max", "memory.current", ""),
}


def library() -> NativeGuard:
    try:
        return NativeGuard.load()
    except SourceUnavailable as absent:
        pytest.skip(str(absent))


def test_a_signal_during_the_stop_does_not_end_the_exemption() -> None:
    found = library()
    with found.exempt():
        with found.exempt():
            pass
        assert found._short.tfguard_exempt(1) == 1
    assert found._short.tfguard_exempt(0) == 0


class Group:
    """The files of a memory group."""

    def __init__(self, folder: Path, version: int, limit: str = str(LIMIT)) -> None:
        folder.mkdir()
        self._folder, self._version = folder, version
        limit_name, used_name, prefix = _NAMES[version]
        (folder / limit_name).write_text(f"{limit}\n")
        self._used = folder / used_name
        self.use(0)
        stat = f"cache 1\n{prefix}inactive_file 2097152\n{prefix}active_file 1048576\nshmem 9\n"
        (folder / "memory.stat").write_text(stat)

    def use(self, size: int) -> None:
        """Set the memory in use; of one length, so that a reader never sees a part of it."""
        descriptor = os.open(self._used, os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(descriptor, f"{size:015}\n".encode(), 0)
        os.close(descriptor)

    def left(self, size: int) -> None:
        """Leave so many bytes available."""
        self.use(LIMIT + 3 * MIB - size)

    @property
    def group(self) -> MemoryGroup:
        return MemoryGroup("/", str(self._folder), self._version, own=True)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("limit", [str(LIMIT), "max"])
def test_it_reads_what_python_reads(tmp_path: Path, version: int, limit: str) -> None:
    if version == 1 and limit == "max":
        limit = "9223372036854771712"
    made = [Group(tmp_path / "own", version, limit), Group(tmp_path / "above", version)]
    guard = library()
    made[0].use(100 * MIB)
    made[1].use(200 * MIB)
    groups = [one.group for one in made]
    guard.use_groups(groups)
    python = headroom(groups)
    assert guard.total_bytes() == python.smallest_bytes == LIMIT
    assert guard.available_bytes() == python.left_bytes == LIMIT + 3 * MIB - 200 * MIB
    guard.use_groups([])


Watched = tuple[NativeGuard, Group, list[int]]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A started guard, its group, and the signals that came."""
    guard, made, signals = library(), Group(tmp_path / "own", 2), list[int]()
    earlier = signal.signal(SIGNAL, lambda number, frame: signals.append(number))
    made.left(LIMIT)
    guard.use_groups([made.group])
    guard.start(SIGNAL)
    yield guard, made, signals
    guard.stop()
    signal.signal(SIGNAL, earlier)


def sees(guard: NativeGuard, size: int) -> Callable[[], bool]:
    return lambda: guard.snapshot().lowest_available_bytes == size


def test_a_trip_sends_signals_until_it_is_delivered(watched: Watched) -> None:
    guard, group, signals = watched
    guard.arm(LEVELS)
    group.left(200 * MIB)
    wait_until(sees(guard, 200 * MIB))
    assert not guard.snapshot().tripped
    group.left(30 * MIB)
    wait_until(lambda: len(signals) >= 3, "a signal that is repeated")
    seen = guard.snapshot()
    assert (seen.tripped, seen.delivered, seen.trip_count) == (True, False, 1)
    assert seen.trip_available_bytes == 30 * MIB
    assert guard.wait_for_trip()
    guard.delivered()
    group.left(28 * MIB)
    wait_until(sees(guard, 28 * MIB))
    assert guard.snapshot().trip_count == 1, "it does not fall on"
    group.left(1 * MIB)
    wait_until(lambda: guard.snapshot().trip_count == 2, "a second trip")


def test_memory_that_others_fill_is_no_trip(watched: Watched) -> None:
    guard, group, signals = watched
    guard.arm(LEVELS._replace(own_fraction=0.25))
    group.left(300 * MIB)
    wait_until(sees(guard, 300 * MIB))
    group.left(30 * MIB)
    wait_until(sees(guard, 30 * MIB))
    group.left(29 * MIB)
    wait_until(sees(guard, 29 * MIB))
    assert not signals
    own = bytearray(b"x") * (400 * MIB)
    wait_until(lambda: guard.snapshot().tripped, "a trip")
    assert guard.snapshot().trip_added_bytes > 0.1 * len(own)


def test_what_recovered_is_not_tripped_any_more(watched: Watched) -> None:
    guard, group, _ = watched
    guard.arm(LEVELS)
    group.left(30 * MIB)
    wait_until(lambda: guard.snapshot().tripped)
    guard.delivered()
    group.left(400 * MIB)
    wait_until(lambda: not guard.snapshot().tripped)
    assert guard.snapshot().trip_count == 0


def test_disarmed_it_neither_reads_nor_trips(watched: Watched) -> None:
    guard, group, signals = watched
    guard.arm(LEVELS)
    group.left(100 * MIB)
    wait_until(sees(guard, 100 * MIB))
    guard.disarm()
    group.left(1 * MIB)
    guard.arm(LEVELS.for_cell(guard.available_bytes()))
    guard.disarm()
    assert not signals
    assert not guard.snapshot().tripped


def test_it_can_be_stopped_and_started_again(watched: Watched) -> None:
    guard, group, _ = watched
    guard.stop()
    guard.arm(LEVELS)
    assert not guard.snapshot().tripped
    guard.use_groups([group.group])
    guard.start(SIGNAL)
    guard.arm(LEVELS)
    group.left(1 * MIB)
    wait_until(lambda: guard.snapshot().tripped)
    guard.delivered()
    guard.stop()


def test_a_missing_library_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "_gate.so")
    with pytest.raises(SourceUnavailable, match="was not built"):
        NativeGuard.load()
    (tmp_path / "_gate.so").write_text("no library")
    with pytest.raises(SourceUnavailable, match="cannot be loaded"):
        NativeGuard.load()


def test_a_library_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    monkeypatch.setattr(native, "_INTERFACE_VERSION", 0)
    with pytest.raises(SourceUnavailable, match="another version"):
        NativeGuard.load()


def test_it_keeps_no_descriptor_which_user_code_could_close(watched: Watched) -> None:
    guard, group, _ = watched
    before = sorted(os.listdir("/proc/self/fd"))
    guard.arm(LEVELS)
    group.left(200 * MIB)
    wait_until(sees(guard, 200 * MIB))
    guard.disarm()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert not any(
        os.readlink(path).endswith("memory.current")
        for path in map("/proc/self/fd/{}".format, before)
        if os.path.exists(path)
    )


def test_a_tensorflow_that_was_not_tested_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        __version__ = "2.99.1"

    guard = library()
    monkeypatch.setitem(sys.modules, "tensorflow", Other)  # type: ignore[arg-type]
    assert "not been tested with TensorFlow 2.99.1" in (guard._arm_tensorflow(refuses=True) or "")
    monkeypatch.delattr(Other, "__version__")
    assert guard._arm_tensorflow(refuses=False) == "", "its import is still running"


def test_the_native_library_compiles_without_a_warning() -> None:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("there is no C compiler here")
    sources = sorted(Path(native.__file__).with_suffix("").glob("*.c"))
    command = [compiler, "-std=c11", "-O2", "-fPIC", "-Wall", "-Wextra", "-fsyntax-only"]
    done = subprocess.run([*command, *sources], capture_output=True, text=True, check=True)
    assert (bool(sources), done.stderr) == (True, "")
