"""Private folders: modes under any umask, and planted links, pipes and foreign files refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.record.folders import PrivateFolder

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777 & ~0o700])
def test_folders_are_0700_and_files_0600_under_any_umask(tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        folder = PrivateFolder(tmp_path / "f")
        os.close(folder.create("a.txt"))
        folder.write_whole("b.txt", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o700
    for name in ("a.txt", "b.txt"):
        assert stat.S_IMODE((tmp_path / "f" / name).stat().st_mode) == 0o600


def test_a_folder_left_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f").chmod(0o777)
    PrivateFolder(tmp_path / "f").close()
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "f").symlink_to(tmp_path / "real")
    with pytest.raises(FolderUnusable, match="TFGUARD_DIR"):
        PrivateFolder(tmp_path / "f")


def test_planted_things_in_place_of_a_file_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    folder = PrivateFolder(tmp_path / "f")
    (tmp_path / "f" / "link").symlink_to(target)
    os.link(target, tmp_path / "f" / "hard")
    os.mkfifo(tmp_path / "f" / "pipe")
    (tmp_path / "f" / "folder").mkdir()
    for name in ("link", "hard", "pipe", "folder"):
        with pytest.raises((FolderUnusable, OSError)):
            folder.create(name)
        assert folder.read(name, 100) is None
    assert target.read_text() == "precious"


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", "..", "/etc/passwd"])
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FolderUnusable, match="plain file name"):
        PrivateFolder(tmp_path / "f").open(name, os.O_RDONLY)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path / "f")
    folder.write_whole("a", b"old")
    folder.write_whole("a", b"new and longer")
    assert folder.read("a", 100) == b"new and longer"
    assert folder.names() == ["a"]


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path / "f")
    folder.write_whole("a", b"0123456789")
    assert folder.read("a", 4) == b"6789"
