"""What is taken for a recording, and what is refused in one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.errors import BundleNotFound, RecordTooNew, RecordUnreadable, TfGuardError
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.replay.recorded import LIMIT_BYTES, read_recorded
from jupyter_tfguard.replay.run import headline
from jupyter_tfguard.replay.tape import ROWS_LIMIT, tape_of
from jupyter_tfguard.report.anonymous import Identity
from jupyter_tfguard.report.export import export
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.replay.made import DIED, bundle

pytestmark = pytest.mark.quick


@pytest.fixture
def store(tmp_path: Path) -> BundleStore:
    return BundleStore(tmp_path / "bundles")


def zipped(path: Path, **files: Any) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            text = content if isinstance(content, (str, bytes)) else json.dumps(content)
            archive.writestr(name, text)
    return str(path)


def test_a_report_is_taken_by_its_id_by_its_folder_and_as_a_zip(
    store: BundleStore, tmp_path: Path
) -> None:
    made = bundle()
    store.save(made, {}, {})
    assert read_recorded(made["id"], store) == made
    assert read_recorded(str(store.root / made["id"]), store) == made
    for place in ("bundle.json", f"{made['id']}/bundle.json"):
        path = zipped(tmp_path / "exported.zip", **{place: made, "report.json": {}})
        assert read_recorded(path, store) == made


def test_a_zip_writes_nothing_wherever_its_names_point(store: BundleStore, tmp_path: Path) -> None:
    names = {"../../bundle.json": bundle(), "/etc/away.txt": "x", "../up.txt": "x"}
    path = zipped(tmp_path / "hostile.zip", **names)
    before = sorted(tmp_path.parent.rglob("*"))
    assert read_recorded(path, store)["id"] == bundle()["id"]
    assert sorted(tmp_path.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"report.json": {}}, "holds no recording"),
        ({"bundle.json": "{", "report.json": {}}, "damaged"),
        ({"bundle.json": "[" * 100_000}, "damaged"),
        ({"bundle.json": "[]"}, "not what it should be"),
        ({"bundle.json": {"id": "x"}}, "names no format"),
        ({"bundle.json": b" " * (LIMIT_BYTES + 1)}, "larger than any bundle"),
        ({"a/bundle.json": bundle(), "b/bundle.json": bundle()}, "holds no recording"),
        ({f"{n}.txt": "" for n in range(1001)}, "more files"),
    ],
    ids=["none", "cut", "deep", "list", "no format", "bomb", "two", "many"],
)
def test_a_zip_that_is_no_report_is_refused_in_a_sentence(
    store: BundleStore, tmp_path: Path, files: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecordUnreadable, match=said):
        read_recorded(zipped(tmp_path / "bad.zip", **files), store)


def test_what_is_no_zip_at_all_is_refused(store: BundleStore, tmp_path: Path) -> None:
    plain, cut = tmp_path / "plain.zip", tmp_path / "cut.zip"
    plain.write_bytes(b"not a zip")
    whole = Path(zipped(tmp_path / "whole.zip", **{"bundle.json": bundle()})).read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    for path in (plain, cut):
        with pytest.raises(RecordUnreadable, match="cannot be read as an exported report"):
            read_recorded(str(path), store)


def test_damaged_content_of_a_zip_is_refused(store: BundleStore, tmp_path: Path) -> None:
    path = Path(zipped(tmp_path / "bit.zip", **{"bundle.json": bundle()}))
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RecordUnreadable):
        read_recorded(str(path), store)


@pytest.mark.parametrize(
    ("told", "error", "said"),
    [
        ("20260921-141320-4711-ffff", BundleNotFound, "no report with the id"),
        ("nowhere/exported.zip", RecordUnreadable, "no file or folder"),
        ("exported.zip", RecordUnreadable, "no file or folder"),
    ],
)
def test_what_is_not_there_is_named(
    store: BundleStore, told: str, error: type[TfGuardError], said: str
) -> None:
    with pytest.raises(error, match=said):
        read_recorded(told, store)


def test_a_newer_format_asks_for_an_update(store: BundleStore, tmp_path: Path) -> None:
    path = zipped(tmp_path / "new.zip", **{"bundle.json": bundle(format=[99, 0])})
    with pytest.raises(RecordTooNew, match="update jupyter-tfguard"):
        read_recorded(path, store)


def test_a_folder_without_a_bundle_says_so(store: BundleStore, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    with pytest.raises(RecordUnreadable, match=r"no bundle\.json"):
        read_recorded(str(empty), store)


def test_a_folder_that_the_user_names_keeps_its_mode(store: BundleStore, tmp_path: Path) -> None:
    for name, content in (("shared", json.dumps(bundle())), ("project", None)):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(0o775)
        if content is None:
            with pytest.raises(RecordUnreadable, match=r"no bundle\.json"):
                read_recorded(str(folder), store)
        else:
            (folder / "bundle.json").write_text(content)
            assert read_recorded(str(folder), store) == bundle()
        assert folder.stat().st_mode & 0o777 == 0o775


def test_a_folder_whose_bundle_is_no_plain_file_is_refused(
    store: BundleStore, tmp_path: Path
) -> None:
    for number, make in enumerate((os.mkfifo, os.mkdir, lambda path: os.symlink(__file__, path))):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / "bundle.json")
        with pytest.raises(RecordUnreadable, match=r"bundle\.json"):
            read_recorded(str(folder), store)
    large = tmp_path / "large"
    large.mkdir()
    (large / "bundle.json").write_bytes(b" " * (LIMIT_BYTES + 1))
    with pytest.raises(RecordUnreadable, match="larger than any bundle"):
        read_recorded(str(large), store)


def test_a_report_that_was_exported_can_be_played(store: BundleStore, tmp_path: Path) -> None:
    made = bundle()
    _, report = to_entry_and_report(made, diagnose(made))
    exported = tmp_path / "exported.zip"
    exported.write_bytes(export(made, report, Identity.of_here()).zipped())
    tape, original = tape_of(read_recorded(str(exported), store)), tape_of(made)
    assert [values["process.rss_bytes"] for _, values in tape.samples] == [
        values["process.rss_bytes"] for _, values in original.samples
    ]
    assert [event["kind"] for event in tape.events] == [event["kind"] for event in original.events]
    assert tape.limit == original.limit
    assert diagnose(tape.bundle).best.cause == report["cause"]


@pytest.mark.skipif(not hasattr(zipfile, "ZIP_LZMA"), reason="Python without LZMA")
def test_damage_is_refused_however_it_was_compressed(store: BundleStore, tmp_path: Path) -> None:
    path = tmp_path / "bit.zip"
    text = json.dumps(bundle()) + " " * 5000
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("bundle.json", text)
        whole = path.read_bytes()
        for place in range(30, 80):
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            path.write_bytes(damaged)
            with contextlib.suppress(RecordUnreadable):  # the name's own damage may pass unseen
                read_recorded(str(path), store)
        damaged = bytearray(whole)
        damaged[100:140] = bytes(40)
        path.write_bytes(damaged)
        with pytest.raises(RecordUnreadable):
            read_recorded(str(path), store)


def test_a_name_that_no_file_can_have_is_not_there(store: BundleStore) -> None:
    with pytest.raises(BundleNotFound):
        read_recorded("a" * 5000, store)
    with pytest.raises(RecordUnreadable, match="no file or folder"):
        read_recorded("a" * 5000 + ".zip", store)


def test_of_a_table_the_known_columns_are_read_and_the_newest_rows() -> None:
    server = bundle()["server"]
    columns = [*server["columns"], *["process.swap_bytes"] * 500, "made.up"]
    rows = [[*row, *range(501)] for row in server["rows"]]
    reads = []

    class Counted(list[Any]):
        def __iter__(self) -> Any:
            reads.append(1)
            return super().__iter__()

    made = bundle(server=server | {"columns": columns, "rows": Counted(rows)})
    tape = tape_of(made)
    assert tape.samples[-1][1].keys() == {
        "process.rss_bytes",
        "process.swap_bytes",
        "cgroup.used_bytes",
        "cgroup.limit_bytes",
    }
    assert len(reads) < 40
    many = [[DIED - 1 - s / 10, 5] for s in range(3 * ROWS_LIMIT)][::-1]
    tape = tape_of(bundle(server={"columns": ["time", "process.rss_bytes"], "rows": many}))
    assert len(tape.samples) == ROWS_LIMIT
    assert tape.samples[-1][0] == DIED - 1


def test_a_zip_cannot_write_to_the_terminal() -> None:
    made = bundle(id="\x1b]0;owned\x07\x1b[2Jthis\nand\u202ethat")
    line = headline(tape_of(made))
    assert line.startswith("Replay of a recording: lessons/train.ipynb, died ")
    assert headline(tape_of(bundle())).startswith(f"Replay of {bundle()['id']}: ")
