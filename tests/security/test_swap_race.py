"""A part of the race of `tests/rigs/swap_race.py`: files and folders swapped while they are used, and nothing gets out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard import private_files
from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.private_files import open_file
from tests.rigs.swap_race import race


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")
@pytest.mark.parametrize("seed", [1, 2])
def test_no_swap_lets_a_byte_out(seed: int) -> None:
    told = race(10_000, seed)
    assert told["escapes"] == []
    assert told["swaps"] >= 10_000
    assert told["worked"] > 100
    assert told["refused"] > 100


@pytest.mark.quick
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells under which name a file was opened"
)
def test_a_link_that_comes_and_goes_within_each_look_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst order of two processes, made by hand: at each look the file outside has one name only."""
    elsewhere, folder = tmp_path / "secret", tmp_path / "ours"
    elsewhere.write_text("somebody else's words")
    folder.mkdir(mode=0o700)
    name = folder / "a.txt"
    real_open, looks = private_files._open, []

    def opened(*arguments: Any) -> int:
        os.link(elsewhere, name)
        descriptor = real_open(*arguments)
        os.unlink(name)
        return descriptor

    def looked(*arguments: Any) -> os.stat_result:
        looks.append(arguments)
        # Found under the name of a link that was gone again before its names were counted.
        return os.stat(elsewhere)

    monkeypatch.setattr(private_files, "_open", opened)
    monkeypatch.setattr(private_files, "_look", looked)
    around = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(FolderUnusable, match="replaced while it was opened"):
            open_file(around, folder, "a.txt", os.O_RDONLY)
    finally:
        os.close(around)
    assert len(looks) == 2
