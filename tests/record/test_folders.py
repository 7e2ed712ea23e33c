"""Private folders: modes under any umask, and planted links, pipes and foreign files refused."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.errors import FolderUnusable
from jupyter_tfguard.private_files import HAS_DESCRIPTORS
from jupyter_tfguard.record.folders import PrivateFolder, remove_folder
from tests.rigs.planted import KINDS, plant

pytestmark = pytest.mark.quick


NOBODY = 61_001
# Run as a user without the right to override permissions: a umask of 0o700 takes the owner's own rights.
UMASKS = """
import json, os, stat, sys
from pathlib import Path
from jupyter_tfguard.record.folders import PrivateFolder
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
    os.environ["TFGUARD_DIR"] = str(top / "tfguard")
    with PrivateFolder(top / "tfguard" / "recordings") as folder:
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
    PrivateFolder(tmp_path / "f").close()
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "f").symlink_to(tmp_path / "real")
    with pytest.raises(FolderUnusable, match="TFGUARD_DIR"):
        PrivateFolder(tmp_path / "f")


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_thing_in_place_of_a_file_is_refused_and_not_touched(
    tmp_path: Path, kind: str
) -> None:
    folder = PrivateFolder(tmp_path / "f")
    planted = plant(kind, tmp_path / "f" / "name", tmp_path / "elsewhere")
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_APPEND):
        with pytest.raises(FolderUnusable, match="plain file"):
            folder.open("name", flags)
    with pytest.raises(FolderUnusable, match="plain file"):
        folder.create("name")
    assert folder.read("name", 100) is None
    planted.check_untouched()
    # Nothing is followed, so a whole file may take the place of all but a folder.
    try:
        folder.write_whole("name", b"ours")
    except OSError:
        assert kind in ("folder", "full folder")
    else:
        assert folder.read("name", 100) == b"ours"
    planted.check_target_untouched()
    assert [n for n in folder.names() if n != "name"] == []


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("folder", "full folder")])
def test_a_planted_thing_in_place_of_a_folder_is_refused_and_only_itself_removed(
    tmp_path: Path, kind: str
) -> None:
    planted = plant(kind, tmp_path / "f", tmp_path / "elsewhere")
    for make in (True, False):
        with pytest.raises(FolderUnusable):
            PrivateFolder(tmp_path / "f", make=make)
    planted.check_untouched()
    remove_folder(tmp_path / "f")
    assert not os.path.lexists(tmp_path / "f")
    planted.check_target_untouched()


def test_a_folder_is_removed_with_links_deep_nesting_and_closed_folders_in_it(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept"
    (kept / "inner").mkdir(parents=True)
    (kept / "file").write_text("precious")
    gone = tmp_path / "gone"
    gone.mkdir(mode=0o700)
    (gone / "to-file").symlink_to(kept / "file")
    (gone / "to-folder").symlink_to(kept)
    os.link(kept / "file", gone / "hard")
    (gone / "closed").mkdir(mode=0o000)
    descriptor = os.open(gone, os.O_RDONLY)
    for _ in range(1100):  # deeper than a path can name, or Python recurse
        os.mkdir("deep", dir_fd=descriptor)
        inner = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.symlink(kept, "link", dir_fd=inner)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    remove_folder(gone)
    assert not gone.exists()
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
    PrivateFolder(tmp_path / "home" / "tfguard" / "bundles").close()
    assert (tmp_path / "disk" / "tfguard" / "bundles").is_dir()
    (tmp_path / "disk" / "tfguard" / "recordings").symlink_to(tmp_path / "disk")
    with pytest.raises(FolderUnusable, match="is a link"):
        PrivateFolder(tmp_path / "home" / "tfguard" / "recordings" / "x")
    assert not (tmp_path / "disk" / "x").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "disk" / "linked").symlink_to(tmp_path / "other")
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "home" / "linked"))
    with pytest.raises(FolderUnusable, match="is a link"):
        PrivateFolder(tmp_path / "home" / "linked" / "bundles")


def test_links_that_go_round_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(FolderUnusable):
        PrivateFolder(tmp_path / "a" / "x")


as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root can make another user's files",
)


@as_root
@pytest.mark.parametrize("what", ["the folder", "the folder around it", "a link to ours"])
def test_what_another_user_planted_in_a_folder_open_to_all_is_refused(
    open_place: Path, tmp_path: Path, what: str
) -> None:
    path = open_place / "around" / "tfguard"
    planted = path if what == "the folder" else open_place / "around"
    if what == "a link to ours":
        (tmp_path / "tfguard").mkdir()
        planted.symlink_to(tmp_path)
    else:
        planted.mkdir(parents=True)
        planted.chmod(0o777)
    os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(FolderUnusable, match=f"belongs to another user .uid {NOBODY}.*TFGUARD_DIR"):
        PrivateFolder(path)
    assert not (tmp_path / "tfguard" / "x").exists()
    assert what == "the folder" or what == "a link to ours" or not path.exists()


@as_root
def test_a_folder_that_anyone_may_replace_is_refused(open_place: Path) -> None:
    around = open_place / "around"
    around.mkdir()
    around.chmod(0o777)
    PrivateFolder(around / "ours").close()  # our own carelessness; others could only take it away
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom jupyter_tfguard.errors import FolderUnusable\n"
        "from jupyter_tfguard.record.folders import PrivateFolder\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "try:\n    PrivateFolder(Path(sys.argv[1]))\nexcept FolderUnusable as bad:\n    print(bad)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(around / "theirs")],
        capture_output=True, text=True, check=True, env=os.environ | {"TFGUARD_DIR": str(around)},
    )  # fmt: skip
    assert "anyone may replace" in done.stdout
    assert not (around / "theirs").exists()


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


@pytest.mark.skipif(not HAS_DESCRIPTORS, reason="folders are named by their paths here")
def test_a_descriptor_that_user_code_closed_leads_nobody_into_the_users_folder(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "model.h5").write_text("weights")
    with PrivateFolder(tmp_path / "ours") as folder:
        folder.write_whole("a", b"1")
        assert folder._held is not None
        ours = folder._held[0]
        os.close(ours)
        user = os.open(theirs, os.O_RDONLY)
        assert user == ours
        folder.write_whole("b", b"2")
        os.close(folder.create("model.h5"))
        folder.remove("model.h5")
        assert folder.names() == ["a", "b"]
        assert folder.has("b")
        assert folder.read("a", 9) == b"1"
        again = folder._held[0]
        assert again != user
        # Closed again, and the folder taken away: nothing can be done any more, least of all elsewhere.
        os.close(again)
        os.dup2(user, again)
        remove_folder(tmp_path / "ours")
        for _ in range(2):
            with pytest.raises(OSError, match=r"ours|closed|No such"):
                folder.write_whole("c", b"3")
        assert folder.names() == []
        assert not folder.has("model.h5")
    assert os.fstat(user).st_ino == os.fstat(again).st_ino == theirs.stat().st_ino
    os.close(user)
    os.close(again)
    assert os.listdir(theirs) == ["model.h5"]
