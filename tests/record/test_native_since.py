"""The native text since a moment, whatever became of the files meanwhile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.native_since import Place, native_text_since
from jupyter_tfguard.record.native_text import FILE_BYTES, KEPT_BYTES, LEAD_BYTES, file_name
from tests.record.spool_rig import run

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(sys.platform == "win32", reason="no native text is kept there"),
]

SINCE = """
from jupyter_tfguard.record.native_since import native_text_since
spool.start()
os.write(2, b"before\\n")
place = spool.place()
{body}
text = native_text_since(PrivateFolder(folder), place)
spool.stop()
print(repr(text[:60]), len(text), repr(text[-20:]))
"""


def test_only_what_came_after_is_given_and_at_once(tmp_path: Path) -> None:
    ran = run(tmp_path, SINCE.format(body="os.write(2, b'after')"))
    assert ran.stdout == "'after' 5 'after'\n"


def test_nothing_is_given_where_nothing_came(tmp_path: Path) -> None:
    assert run(tmp_path, SINCE.format(body="")).stdout == "'' 0 ''\n"


@pytest.mark.parametrize("lines", [900, 1500, 1900, 2500])
def test_it_is_whole_or_its_end_when_the_files_take_turns(tmp_path: Path, lines: int) -> None:
    # 100 bytes a line, 64 KiB a file; the spool's thread is given time to change the file.
    body = f"""
for n in range({lines}):
    os.write(2, (f"line {{n:06d}}".ljust(99, ".") + chr(10)).encode())
    if n % 100 == 0:
        time.sleep(0.03)
"""
    ran = run(tmp_path, SINCE.format(body=body))
    assert ran.returncode == 0, ran.stderr
    assert "before" not in ran.stdout
    whole = lines * 100
    length = int(ran.stdout.split("' ")[1].split(" ")[0])
    assert length == min(whole, KEPT_BYTES)
    if whole <= KEPT_BYTES:
        assert ran.stdout.startswith("'line 000000")


def test_the_end_of_much_text_at_once_is_there_whatever_was_cleared(tmp_path: Path) -> None:
    body = """
os.write(2, b"much" * 60_000 + b"the end of it")
"""
    for wait in ("", "heard(b'end of it')", "heard(b'end of it'); time.sleep(0.3)"):
        ran = run(tmp_path / str(len(wait)), SINCE.format(body=body + wait))
        assert ran.stdout.rstrip().endswith("the end of it'"), ran.stdout + ran.stderr


def test_without_a_spool_there_is_no_place(tmp_path: Path) -> None:
    ran = run(tmp_path, "print(spool.place()); spool.start(); spool.stop(); print(spool.place())")
    assert ran.stdout == "None\nNone\n"


def test_files_that_are_gone_or_forged_give_what_there_is(tmp_path: Path) -> None:
    with PrivateFolder(tmp_path / "recording") as folder:
        assert native_text_since(folder, Place(2, LEAD_BYTES)) == ""
        folder.write_whole(file_name(2), bytes(LEAD_BYTES) + b"text\xff\0\0")
        assert native_text_since(folder, Place(2, LEAD_BYTES + 1)) == "ext�"
        assert native_text_since(folder, Place(2, 10 * FILE_BYTES)) == ""
        # A file of another time: all that is kept is newer.
        assert native_text_since(folder, Place(8, LEAD_BYTES)) == "text�"
        folder.write_whole(file_name(4), b"x" * (3 * FILE_BYTES))
        assert native_text_since(folder, Place(2, LEAD_BYTES)) == "x" * KEPT_BYTES
