"""A report that could not be written is written once it can be: a full disk at the death loses nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.shield import note_problem
from tests.rigs.waiting import wait_until_async

from .conftest import Server


async def test_a_report_that_cannot_be_written_is_made_when_it_can(
    server: Server, caplog: pytest.LogCaptureFixture, data_folder: Path
) -> None:
    caplog.set_level(logging.WARNING)
    postmortem = server.app.web_app.settings["tfguard_service"]._postmortem
    kernel_id = await server.start_kernel()
    pid = await server.pid(kernel_id)
    in_the_way = data_folder / "bundles"
    assert not in_the_way.exists()
    in_the_way.write_text("")
    os.kill(pid, signal.SIGKILL)

    def lines() -> list[str]:
        return [m for r in caplog.records if (m := r.getMessage()).startswith("tfguard: kernel")]

    [line] = await wait_until_async(lines, "a line in the log")
    assert "could not be written" in line
    assert line.endswith("tfguard tries again every 5 min.")
    await asyncio.to_thread(postmortem.handle_unwatched)
    assert len(lines()) == 1
    in_the_way.unlink()
    await asyncio.to_thread(postmortem.handle_unwatched)
    [crash] = await server.crashes(1)
    assert (crash["kernel_id"], crash["pid"]) == (kernel_id, pid)
    # What the server saw of the end, and the kernel's recording, are both in it.
    assert (crash["cause"], crash["confidence"]) == ("sigkill_unattributed", "certain")
    assert not [name for name in os.listdir(data_folder / "recordings") if f"{pid}-" in name]
    await asyncio.to_thread(postmortem.handle_unwatched)
    assert len(await server.crashes(1)) == 1


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
