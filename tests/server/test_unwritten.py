"""A crash whose report cannot be saved is shown from memory, and saved once that is possible."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.kernel.news import News
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.shield import note_problem
from tests.rigs.schemas import matches
from tests.rigs.waiting import wait_until_async

from .conftest import Server


@pytest.fixture
def full_disk(data_folder: Path) -> Iterator[Path]:
    """The data folder on a small file system of its own, and the folder of the reports on another one that is full."""
    data_folder.mkdir(mode=0o700)
    folders = data_folder, data_folder / "bundles"
    for folder in folders:
        folder.mkdir(mode=0o700, exist_ok=True)
        made = _mount("-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(folder))
        if made.returncode:
            pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    fill(data_folder / "bundles")
    yield data_folder
    for folder in reversed(folders):
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _mount(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *words], capture_output=True, text=True, check=False)


def fill(folder: Path) -> None:
    """Take all that is free with a file."""
    with (folder / "filling").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass


def recordings_of(pid: int, data_folder: Path) -> list[str]:
    return [name for name in os.listdir(data_folder / "recordings") if f"{pid}-" in name]


async def test_a_crash_on_a_full_disk_is_shown_and_saved_later(
    full_disk: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    service = server.app.web_app.settings["tfguard_service"]
    kernel_id = await server.start_kernel()
    pid = await server.pid(kernel_id)
    os.kill(pid, signal.SIGKILL)

    # The list, the event, the log, the problems, the report, the pages and the export have it.
    [crash] = await server.crashes(1)
    assert (crash["pid"], crash["cause"], crash["confidence"]) == (
        pid,
        "sigkill_unattributed",
        "certain",
    )
    assert "No space left on device. Free some disk space" in crash["unsaved"]
    await wait_until_async(lambda: server.events, "the event")
    assert [event["id"] for event in server.events] == [crash["id"]]
    [line] = [m for r in caplog.records if (m := r.getMessage()).startswith("tfguard: kernel")]
    assert crash["id"] in line
    assert "No space left on device" in line
    found = (await server.get("status"))["problems"]
    [problem] = [p for p in found if p["what"].startswith("A crash report is only in the memory")]
    assert problem["noted_at"] is None
    assert problem["fix"].startswith("Free some disk space")
    report = matches("report", await server.get("crashes", crash["id"]))
    assert report["unsaved"] == crash["unsaved"]
    for path, words in ((crash["id"], crash["unsaved"][:40]), ("", "not saved")):
        page = (await server.fetch("tfguard", "report", path)).body.decode()
        assert words in page
    zipped = await server.fetch("tfguard", "api", "crashes", crash["id"], "bundle")
    with zipfile.ZipFile(io.BytesIO(zipped.body)) as archive:
        assert "unsaved" not in json.loads(archive.read("report.json"))
    await server.fetch("tfguard", "api", "crashes", crash["id"], "read", method="POST", body="")
    assert not os.path.exists(full_disk / "bundles" / crash["id"])

    # Still full: nothing is reported twice. Another process finds what the server saw.
    await asyncio.to_thread(service._postmortem.handle_unwatched)
    assert len(await server.crashes(1)) == len(server.events) == 1
    [name] = recordings_of(pid, full_disk)
    contents = read_recording(full_disk / "recordings" / name)
    assert contents.seen is not None
    assert contents.seen["id"] == crash["id"]
    assert contents.seen["server"]["exit"]["signal"] == "SIGKILL"

    [same] = News(TfGuard(), kernel_id, None).reports().entries()  # as a magic has it
    assert (same["id"], same["unsaved"]) == (crash["id"], crash["unsaved"])

    (full_disk / "bundles" / "filling").unlink()
    await asyncio.to_thread(service._postmortem.handle_unwatched)
    [saved] = await server.crashes(1)
    assert saved == {n: v for n, v in crash.items() if n != "unsaved"} | {"unread": False}
    assert os.path.exists(full_disk / "bundles" / crash["id"])
    assert recordings_of(pid, full_disk) == []
    assert [p for p in (await server.get("status"))["problems"] if "memory of" in p["what"]] == []
    assert len(server.events) == 1


async def test_on_a_full_disk_the_report_takes_the_room_of_the_recording(
    full_disk: Path, server: Server
) -> None:
    subprocess.run(["umount", str(full_disk / "bundles")], check=True)
    kernel_id = await server.start_kernel()
    pid = await server.pid(kernel_id)
    fill(full_disk)
    os.kill(pid, signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert crash["cause"] == "sigkill_unattributed"
    await wait_until_async(lambda: server.events, "the event")
    assert "unsaved" not in await server.get("crashes", crash["id"])
    assert recordings_of(pid, full_disk) == []


async def test_a_crash_on_a_read_only_disk_is_shown_and_can_be_deleted(
    full_disk: Path, server: Server
) -> None:
    service = server.app.web_app.settings["tfguard_service"]
    first, second = await server.start_kernel(), await server.start_kernel()
    pids = [await server.pid(kernel_id) for kernel_id in (first, second)]
    for words in (("--bind", str(full_disk)), ("-o", "remount,bind,ro")):
        assert _mount(*words, str(full_disk)).returncode == 0
    os.kill(pids[0], signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert "Read-only file system. Set TFGUARD_DIR" in crash["unsaved"]
    # What the kernel had recorded is in it.
    assert (await server.get("crashes", crash["id"]))["versions"]
    await server.fetch("tfguard", "api", "crashes", crash["id"], method="DELETE")
    assert (await server.get("crashes"))["crashes"] == []
    os.kill(pids[1], signal.SIGKILL)
    [other] = await server.crashes(1)
    subprocess.run(["umount", "--lazy", str(full_disk)], check=True)
    (full_disk / "bundles" / "filling").unlink()
    await asyncio.to_thread(service._postmortem.handle_unwatched)
    assert {c["id"] for c in await server.crashes(1) if "unsaved" not in c} >= {other["id"]}
    assert recordings_of(pids[1], full_disk) == []


async def test_a_failure_reaches_the_page_when_nothing_can_be_written(
    server: Server, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shield, "_noted", {})  # another test may have had the same failure
    monkeypatch.setenv("TFGUARD_DIR", os.devnull)  # a full disk, or one that is read-only
    note_problem("report of a dead kernel", OSError(28, "No space left on device"), fix="Free it.")
    monkeypatch.setenv("TFGUARD_DIR", str(data_folder))
    [problem] = (await server.get("status"))["problems"]
    assert problem["what"].endswith("No space left on device")
    assert problem["fix"] == "Free it."
