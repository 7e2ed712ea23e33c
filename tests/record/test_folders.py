"""Private folders: modes under any umask; links, pipes and files of other users refused."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.private_files import PrivateFolder, remove_folder

pytestmark = pytest.mark.quick


NOBODY = 61_001
# Run as a user without the right to override permissions: a umask of 0o700 takes the owner's own rights.
UMASKS = """
import json, os, stat, sys
from pathlib import Path
from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard import private_files, redact, shield
base = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
wrong = []
for umask in range(0o1000):
    os.umask(umask)
    top = base / str(umask)
    top.mkdir()
    top.chmod(0o700)
    os.environ["TFGUARD_DIR"] = str(top / "tfguard")
    folder = PrivateFolder(top / "tfguard" / "recordings")
    os.close(folder.create("made"))
    os.close(folder.open("opened", os.O_WRONLY | os.O_CREAT))
    folder.write_whole("whole", b"x")
    shield.note_problem("umask", str(umask))
    assert folder.read("whole", 10) == b"x"
    for path in (top, *top.rglob("*")):
        wanted = 0o700 if path.is_dir() else 0o600
        if stat.S_IMODE(path.stat().st_mode) != wanted:
            wrong.append((oct(umask), str(path), oct(path.stat().st_mode)))
    assert len(list(top.rglob("*"))) == 6
print(json.dumps(wrong))
"""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that other users of this machine may use, outside of pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="tfguard-place-"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
def test_folders_are_0700_and_files_0600_under_all_512_umasks(open_place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UMASKS, str(open_place), str(NOBODY)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr + done.stdout[:2000]


def test_a_folder_left_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f").chmod(0o777)
    PrivateFolder(tmp_path / "f")
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "f").symlink_to(tmp_path / "real")
    with pytest.raises(FolderUnusable, match="TFGUARD_DIR"):
        PrivateFolder(tmp_path / "f")


def _link(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def _hard_link(path: Path, precious: Path) -> None:
    os.link(precious, path)


def _pipe(path: Path, precious: Path) -> None:
    os.mkfifo(path)  # no reader: a usual open blocks


def _folder(path: Path, precious: Path) -> None:
    path.mkdir()


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
@pytest.mark.parametrize("plant", [_link, _hard_link, _pipe, _folder])
def test_what_is_no_plain_file_is_refused(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("weights")
    folder = PrivateFolder(tmp_path / "f")
    plant(tmp_path / "f" / "name", precious)
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_APPEND):
        with pytest.raises((FolderUnusable, OSError)):
            folder.open("name", flags)
    with pytest.raises((FolderUnusable, OSError)):
        folder.create("name")
    assert folder.read("name", 100) is None
    if plant is not _folder:
        folder.write_whole("name", b"ours")  # takes the place of a link, and follows none
        assert folder.read("name", 100) == b"ours"
        assert folder.names() == ["name"]
    assert precious.read_text() == "weights"


def test_a_folder_is_removed_and_no_link_in_it_is_followed(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    (kept / "inner").mkdir(parents=True)
    (kept / "file").write_text("precious")
    (gone / "deep" / "deeper").mkdir(parents=True)
    (gone / "deep" / "deeper" / "file").write_text("ours")
    (gone / "to-file").symlink_to(kept / "file")
    (gone / "to-folder").symlink_to(kept)
    (tmp_path / "link").symlink_to(kept)
    remove_folder(gone)
    remove_folder(tmp_path / "link")
    remove_folder(tmp_path / "never-there")
    assert os.listdir(tmp_path) == ["kept"]
    assert (kept / "file").read_text() == "precious"
    assert (kept / "inner").is_dir()


def test_without_make_an_absent_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(FolderUnusable, match="No such file"):
        PrivateFolder(tmp_path / "a" / "b", make=False)
    assert not (tmp_path / "a").exists()


def test_links_above_the_data_folder_are_followed_and_below_it_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "home" / "tfguard"))
    PrivateFolder(tmp_path / "home" / "tfguard" / "bundles")
    assert (tmp_path / "disk" / "tfguard" / "bundles").is_dir()
    (tmp_path / "disk" / "tfguard" / "recordings").symlink_to(tmp_path / "disk")
    with pytest.raises(FolderUnusable, match="TFGUARD_DIR"):
        PrivateFolder(tmp_path / "home" / "tfguard" / "recordings" / "x")
    assert not (tmp_path / "disk" / "x").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "disk" / "linked").symlink_to(tmp_path / "other")
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "home" / "linked"))
    with pytest.raises(FolderUnusable, match="TFGUARD_DIR"):
        PrivateFolder(tmp_path / "home" / "linked" / "bundles")


as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root can make another user's files",
)


@as_root
def test_a_data_folder_of_another_user_is_refused(
    open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = open_place / "tfguard"
    planted.mkdir()
    planted.chmod(0o777)
    os.chown(planted, NOBODY, NOBODY)
    monkeypatch.setenv("TFGUARD_DIR", str(planted))
    for path in (planted, planted / "recordings" / "1-1"):
        with pytest.raises(FolderUnusable, match=f"another user .uid {NOBODY}.*TFGUARD_DIR"):
            PrivateFolder(path)
    assert os.listdir(planted) == []


@as_root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path / "f")
    folder.write_whole("name", b"x")
    os.chown(tmp_path / "f" / "name", NOBODY, NOBODY)
    with pytest.raises(FolderUnusable, match="another user"):
        folder.open("name", os.O_RDONLY)
    assert folder.read("name", 10) is None


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", "..", "/etc/passwd", "a\0b"])
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
